"""Processor time of a training step."""
