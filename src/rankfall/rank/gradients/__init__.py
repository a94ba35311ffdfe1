"""Gradients of the loss with respect to each layer's queries, keys, values and input."""
