"""Tasks: functions that draw a data set from a random generator and options."""
