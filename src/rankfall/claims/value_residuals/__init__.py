"""A test of whether the values of the first layer keep tokens apart in later ones: Zhou et al. 2024, Nguyen et al. 2023."""
