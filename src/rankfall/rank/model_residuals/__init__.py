"""Residual of a real model's tokens, layer by layer."""
