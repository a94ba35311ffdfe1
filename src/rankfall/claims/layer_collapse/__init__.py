"""A test of whether many layers of small weights do no more than one: Alman and Song 2025."""
