"""Inits: how parameters of each role are drawn."""
