"""Identifiability of tokens from hidden states, in cells."""
