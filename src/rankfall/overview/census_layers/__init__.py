"""The census by layer: every model type of the transformers library at initialisation, with residuals, norms, orders, gradients and equal
tokens."""
