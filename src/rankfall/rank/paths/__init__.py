"""Accuracy of paths of each length through a trained network."""
