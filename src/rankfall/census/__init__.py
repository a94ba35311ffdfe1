"""Every model type of the transformers library: built small, measured as it is initialised in a process of its own, and described."""
