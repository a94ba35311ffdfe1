"""Sentinels: learned tokens set beside the sequence, as part of the model."""
