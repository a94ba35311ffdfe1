"""The census of the transformers library: each model type built small and measured at initialisation in its own process."""
