"""The mathematics of the position study: which networks can tell places apart."""
