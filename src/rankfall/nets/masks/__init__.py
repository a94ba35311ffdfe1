"""Masks: functions from a length to the keys (columns) that each query (row) may attend to."""
