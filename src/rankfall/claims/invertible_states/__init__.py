"""A test of whether a decoder's states tell exactly which tokens it was given: Nikolaou et al. 2025, by layer and number format."""
