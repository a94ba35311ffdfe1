"""Measures: functions from networks and data to rows of one table."""
