"""A test of whether a decoder can tell n from n + 1 equal tokens, and count at all: Barbero et al. 2024."""
