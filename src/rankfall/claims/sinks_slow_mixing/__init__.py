"""A test of whether a first token that draws attention slows the mixing of the others: Barbero et al. 2025, in networks with random
weights."""
