"""Positions: where a network learns of places: in the embedding, in queries and keys, or in the logits."""
