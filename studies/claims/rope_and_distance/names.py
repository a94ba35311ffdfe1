"""Names that the experiment and the rules share."""

MEAN = "mean score over its standard error, by distance"
SIZE = "standard deviation of scores, by distance"
ALIKE = "score of a query that equals its key, by distance"
OWN = "attention on the own token, by score scale"
DIFFER = "tokens that differ"
TWICE = "a token that occurs twice"
ROPE = "a token that occurs twice, RoPE"
