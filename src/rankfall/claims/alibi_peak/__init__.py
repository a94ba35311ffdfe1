"""A test of where products of causal ALiBi layers have their weight: the closed form of Wu et al. 2025."""
