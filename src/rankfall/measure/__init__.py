"""The input of every measure, and its application to a trained cell."""
