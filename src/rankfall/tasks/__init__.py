"""Tasks: functions from a random generator and sizes to a data set."""
