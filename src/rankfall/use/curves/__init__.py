"""Training curves: a metric by epoch."""
