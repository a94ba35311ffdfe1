"""Names that the experiment and the rules share."""

KEPT = "relative residual, by layer"
LEAST = 1e-13
