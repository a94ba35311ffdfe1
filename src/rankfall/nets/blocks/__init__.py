"""Blocks: the parts of a network that repeat with depth."""
