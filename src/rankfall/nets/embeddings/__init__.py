"""Embeddings: from a task's inputs to states (K, B, T, D)."""
