"""Selection of the residual, defined as for cells."""

RESIDUAL = {"metric": "composite", "centre": "mean"}
