"""A test of whether a layer norm alone keeps tokens apart: Wu et al. 2024, against arithmetic without a rounding floor."""
