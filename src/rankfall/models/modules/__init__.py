"""Any `nn.Module`: its residual stream, found in one recorded pass, the layers and branches of it, and passes in which they are changed."""
