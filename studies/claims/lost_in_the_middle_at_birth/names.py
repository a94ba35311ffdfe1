"""Names that the experiment and the rules share."""

RANKS = "rank correlation with the network, by layers"
OFF = "total variation distance from the network, by layers"
