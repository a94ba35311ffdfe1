"""Telling equal tokens apart, against running on longer text."""
