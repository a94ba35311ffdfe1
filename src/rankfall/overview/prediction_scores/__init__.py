"""Scores of how well measurements at birth predict the outcomes of networks of architectures that a model has not seen."""
