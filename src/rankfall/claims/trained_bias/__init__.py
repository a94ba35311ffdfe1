"""A test of whether trained causal networks favour early items more the deeper they are: Wu et al. 2025, on a task of minutes."""
