"""The residual against depth, for each value of what is swept."""
