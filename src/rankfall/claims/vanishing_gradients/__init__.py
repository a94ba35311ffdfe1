"""A test of which gradients vanish if all tokens are equal: Noci et al. 2022."""
