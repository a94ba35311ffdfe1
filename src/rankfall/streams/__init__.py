"""Residual streams of any `nn.Module`: found in one recorded pass, with their layers and branches, and edited in further passes."""
