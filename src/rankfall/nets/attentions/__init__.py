"""Attentions: how a layer mixes tokens."""
