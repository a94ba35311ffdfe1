"""Accuracy against the share of repeated tokens."""
