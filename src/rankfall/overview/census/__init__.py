"""One row a model type of the transformers library: what it is made of, and what it keeps at initialisation."""
