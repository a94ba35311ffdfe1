"""The census: for each model type of the transformers library, its parts, and what it keeps at initialisation."""
