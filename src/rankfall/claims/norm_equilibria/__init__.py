"""A test of whether attention with a norm has equilibria of every rank: Wu et al. 2024."""
