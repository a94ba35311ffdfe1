"""Inits: distributions of the initial parameters of each role."""
