"""Data sets that tasks draw, by seed."""
