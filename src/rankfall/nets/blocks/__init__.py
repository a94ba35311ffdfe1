"""Blocks: what is repeated with depth."""
