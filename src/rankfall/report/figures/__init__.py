"""Figures: each drawn from tables alone."""
