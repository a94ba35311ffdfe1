"""Which rows of the table the scorecard, the page and figures mean by "the residual"."""

STATES = {"place": "state"}
BY_DEFAULT = {"matrix_norm": "composite", "centre": "mean"}  # about the mean of the tokens; mean over samples
RESIDUAL = {**STATES, **BY_DEFAULT, "quantity": "residual"}
