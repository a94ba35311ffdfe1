"""Attentions that do not have what they say they provide, or have something else."""

from torch import nn

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.primitives import Linear, no_dropout

PROVIDES = ("weights", "heads", "factors by offset")
ROWS = "one"
IGNORES = ()


class Lacking(nn.Module):
    def __init__(self, sizes, position, normaliser, mask, site):
        super().__init__()
        self.value = Linear(sizes, sizes.width, sizes.width, "value")

    def forward(self, x, drop=no_dropout):
        return self.value(x)


class Honest(Multihead):
    def factors(self, length):
        return None


class OtherWeights(Honest):
    def weights(self, x):
        return super().weights(x).flip(-1)

    def forward(self, x, drop=no_dropout):
        return self.mix(drop(Multihead.weights(self, x), "site"), x)
