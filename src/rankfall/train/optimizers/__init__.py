"""Optimisers on the rows of a stack, one row for each member."""
