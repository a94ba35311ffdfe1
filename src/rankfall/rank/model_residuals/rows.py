"""Which rows of the table are the residual, as of networks of ours."""

RESIDUAL = {"metric": "composite", "centre": "mean"}
