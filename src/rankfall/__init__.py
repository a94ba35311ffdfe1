"""Rankfall: what attention loses with depth."""

__version__ = "0.1.0"
