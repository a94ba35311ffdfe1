"""Norms of states (K, B, T, D)."""
