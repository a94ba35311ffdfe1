"""A test of whether attention sinks come from weights that must sum to one: Gu et al. 2024, in small causal language models."""
