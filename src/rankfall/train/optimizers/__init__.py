"""Optimisers on the rows of a stack, one row a member."""
