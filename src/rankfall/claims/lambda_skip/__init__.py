"""A test of whether a strong enough skip connection keeps rank: Joseph et al. 2024."""
