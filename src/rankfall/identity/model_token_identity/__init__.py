"""Identifiability of tokens from the hidden states of real models."""
