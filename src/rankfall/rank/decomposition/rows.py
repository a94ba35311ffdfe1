"""Selection of rows on paths; the others are on biases."""

PATHS = {"term": "paths"}
