"""A test of whether rank is lost in one layer as sequences get longer, and whether taking 1/T off the weights cures it: Nait Saada et al.
2025."""
