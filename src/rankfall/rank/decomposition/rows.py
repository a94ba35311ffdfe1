"""Which rows of the table are of paths; the others are of biases."""

PATHS = {"term": "paths"}
