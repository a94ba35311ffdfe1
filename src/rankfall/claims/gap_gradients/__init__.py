"""A test of whether gradients explode with depth because weights of attention have a common part: Nait Saada et al. 2025."""
