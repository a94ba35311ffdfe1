"""Learned terms for each offset between two tokens."""
