"""Concentration of attention weights, and the share of the first token."""
