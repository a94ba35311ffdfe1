"""Comparison of attributions on networks built by hand, whose dependence on each token is known exactly."""
