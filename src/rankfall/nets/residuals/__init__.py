"""Residuals: functions that join a sub-layer's input and its output."""
