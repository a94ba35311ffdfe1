"""Objectives: the loss that is minimised on a batch, and further metrics, for each member."""
