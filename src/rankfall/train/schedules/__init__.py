"""Schedules: functions from an epoch to a factor of the learning rate."""
