"""A test of whether attention near the identity keeps rank without skips and norms: He et al. 2023."""
