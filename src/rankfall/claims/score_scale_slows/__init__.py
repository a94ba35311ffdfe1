"""A test of whether larger scores slow the loss of rank, and by which mask: Wu et al. 2024."""
