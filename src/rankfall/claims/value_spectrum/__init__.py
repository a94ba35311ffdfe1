"""A test of whether the spectrum of value and output maps determines whether tokens become alike: Dovonon et al. 2024."""
