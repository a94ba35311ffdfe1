"""Normalisers: functions from logits (..., T, T), -inf where masked, to attention weights of the same shape."""
