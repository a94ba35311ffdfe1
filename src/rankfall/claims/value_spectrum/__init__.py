"""A test of whether the spectrum of value and output maps says if tokens become alike: Dovonon et al. 2024."""
