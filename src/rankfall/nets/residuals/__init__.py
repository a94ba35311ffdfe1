"""Residuals: functions that combine a sublayer's input and output."""
