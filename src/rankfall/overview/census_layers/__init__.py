"""Every model type of the transformers library at initialisation, layer by layer: residual, norm, order, gradients, equal tokens."""
