"""Trained networks on the probe."""
