"""Sizes and directions of each layer's states, also without the first token and without the largest channels."""
