"""Curves of training: a metric by epoch."""
