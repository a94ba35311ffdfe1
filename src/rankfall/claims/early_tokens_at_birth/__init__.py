"""Tests of how depth favours the first tokens of causal networks with random weights: Wu et al. 2025, Barbero et al. 2024."""
