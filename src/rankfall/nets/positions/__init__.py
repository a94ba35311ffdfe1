"""Positions: how positions enter a network: in the embedding, in queries and keys, or in the logits."""
