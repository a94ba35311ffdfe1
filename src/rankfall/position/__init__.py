"""The mathematics of the position study: which networks can distinguish positions."""
