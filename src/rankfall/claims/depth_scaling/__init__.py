"""A test of whether branches scaled by 1/sqrt(L) keep tokens apart at any depth: Noci et al. 2022."""
