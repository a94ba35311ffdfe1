"""Products of a model's attention matrices along random paths."""
