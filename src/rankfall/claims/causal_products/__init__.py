"""A test of whether products of causal attention matrices converge to the first token, and how fast: Wu et al. 2025."""
