"""Distinguishing equal tokens, against generalising to longer text."""
