"""Masks: functions from a length to which key (column) each query (row) may see."""
