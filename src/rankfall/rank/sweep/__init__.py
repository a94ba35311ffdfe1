"""Residual against depth, for each value of a swept column."""
