"""A test of whether branches must be scaled by 1 / L for layers to learn more than their linearisation: Dey et al. 2025."""
