"""Exact contribution of paths of each length to the output."""
