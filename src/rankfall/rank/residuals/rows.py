"""Selection of rows that the scorecard, the page and figures call "the residual"."""

STATES = {"place": "state"}
BY_DEFAULT = {"matrix_norm": "composite", "centre": "mean"}  # about the mean of the tokens; mean over samples
RESIDUAL = {**STATES, **BY_DEFAULT, "quantity": "residual"}
