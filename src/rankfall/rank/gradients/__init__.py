"""Gradients of the loss by the weights of each layer's queries, keys and values, and by what enters the layer."""
