"""Names that the experiment and the rules share."""

QUANTITY = "log10 of the spread of tokens, by layer"
