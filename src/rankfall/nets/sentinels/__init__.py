"""Sentinels: learned tokens that the model adds to the sequence."""
