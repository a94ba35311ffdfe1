"""Parts of networks that measures cannot take apart as they are, and do not say so."""

from torch import nn

from rankfall.nets.blocks.attention import Attention
from rankfall.nets.dropout import no_dropout
from rankfall.nets.primitives import constant


class Usual(Attention):
    """The same as the block `attention`, written otherwise."""

    def forward(self, x, drop=no_dropout):
        return super().forward(x, drop)


class Doubled(Attention):
    """Its branches count twice, so that it is not the sum that its parts say."""

    def forward(self, x, drop=no_dropout):
        return 2 * super().forward(x, drop) - x


class Twice(Attention):
    def forward(self, x, drop=no_dropout):
        return super().forward(super().forward(x, drop), drop)


class LastTwo(nn.Module):
    asks_earlier = True

    def __init__(self, sizes):
        super().__init__()
        self.share = constant(sizes, 1, 1, 1, value=0.5)

    def forward(self, x, branch, earlier=None):
        before = earlier.setdefault("states", [x])
        before.append(x)
        return x + branch + self.share * (x - before[-2])
