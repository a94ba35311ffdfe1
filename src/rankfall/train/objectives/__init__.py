"""Objectives: what is minimised on a batch, and what else is told of it, member by member."""
