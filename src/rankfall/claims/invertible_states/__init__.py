"""A test of whether a decoder's states determine its input tokens: Nikolaou et al. 2025, by layer and number format."""
