"""Heads: from states (K, B, T, D) to a task's outputs."""
