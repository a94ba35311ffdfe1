"""Hyper-connections (Zhu et al. 2024): a network carries n streams instead of one state, and every sublayer reads, writes and mixes them.

    h = sum_m a_m S_m,   S_m <- sum_k R_mk S_k + b_m F(N(h))

for attention and MLP, each with its own numbers a, b and R, learned and equal for all tokens (the paper's dynamic part, which depends on
the token, is left out). `mixing`: how the numbers are parametrised.

- `free`, as published: a starts with one stream, s mod n in sublayer s, b with ones, R with the identity: then every stream is a network
  with skip connections. With `read: mean` a starts with 1 / n.
- `doubly_stochastic` (Xie et al. 2025): R = Sinkhorn(e^W) in `rounds` rounds, so that its rows and columns sum to one, with W initially the
  identity times `sharpness`; a = sigmoid(.), initially 1 / n; b = 2 sigmoid(.), initially one. Products of such R make all streams equal.

The state between blocks has the streams side by side, (K, B, T, n D). All are equal before the first block, and their mean leaves the last.
The paper uses their sum, which differs by a factor. With norms after (`post`), every stream is normed after every sublayer.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rankfall.nets.blocks.attention import Attention
from rankfall.nets.primitives import Dropout, Earlier, Sizes, bind_earlier, constant, no_dropout

BREAKS = ("blocks", "weights", "heads", "values")
TOKENWISE = True
LIMITS = {"streams": (1, None), "rounds": (1, None), "sharpness": (0, None)}
REQUIRES = [({"residual": "add"}, "streams are mixed by maps of their own")]


class Hyper(Attention):
    def __init__(
        self,
        *,
        sizes: Sizes,
        streams: int = 4,
        mixing: Literal["free", "doubly_stochastic"] = "free",
        read: Literal["turns", "mean"] = "turns",
        rounds: int = 20,
        sharpness: float = 4.0,
        **parts: Any,
    ) -> None:
        super().__init__(**parts)
        self.streams = streams
        number = 2 * (sizes.layer - 1) if self.mlp is not None else sizes.layer - 1
        stochastic = mixing == "doubly_stochastic"

        def connections(sublayer: int) -> nn.Module:
            first = None if read == "mean" else sublayer % streams
            return Stochastic(sizes, streams, rounds, sharpness) if stochastic else Free(sizes, streams, first)

        self.around1 = connections(number)
        self.around2 = connections(number + 1) if self.mlp is not None else None

    def widen(self, x: Tensor) -> Tensor:
        """Repeat vectors (K, B, T, D) as streams (K, B, T, n D), the input of the first block."""
        return x.repeat(1, 1, 1, self.streams)

    def narrow(self, x: Tensor) -> Tensor:
        """Return the mean of the streams, the output of the last block."""
        return x.unflatten(-1, (self.streams, -1)).mean(-2)

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        attention = bind_earlier(self.attention, earlier)
        x = self.sublayer(x, lambda h: drop(attention(h, drop), f"{self.site}.attention"), self.norm1, self.around1)
        if self.mlp is None:
            return x
        mlp = self.mlp
        return self.sublayer(x, lambda h: drop(mlp(h), f"{self.site}.mlp"), self.norm2, self.around2)

    def sublayer(self, x: Tensor, function: Any, norm: Any, around: Any) -> Tensor:
        """Return the streams (K, B, T, n D) after one sublayer. `around` returns its numbers a, b and R."""
        read, write, mix = around()  # (K, 1, 1, 1, n), (K, 1, 1, n, 1), (K, 1, 1, n, n)
        streams = x.unflatten(-1, (self.streams, -1))  # (K, B, T, n, D)
        h = (read @ streams).squeeze(-2)
        branch = function(norm(h) if self.placement == "pre" else h)  # (K, B, T, D)
        streams = mix @ streams + write * branch.unsqueeze(-2)
        if self.placement == "pre":
            return streams.flatten(-2)
        # A stream is normed like a token.
        return norm(streams.flatten(2, 3)).unflatten(2, (-1, self.streams)).flatten(-2)


class Free(nn.Module):
    """Unconstrained numbers, stored relative to their initial values. `first`: the stream that is read at first, None for the mean."""

    def __init__(self, sizes: Sizes, streams: int, first: int | None) -> None:
        super().__init__()
        self.streams, self.first = streams, first
        self.read = constant(sizes, 1, 1, 1, streams, value=0.0)
        self.write = constant(sizes, 1, 1, streams, 1, value=1.0)
        self.mix = constant(sizes, 1, 1, streams, streams, value=0.0)

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        identity = torch.eye(self.streams, dtype=self.mix.dtype, device=self.mix.device)
        start = 1 / self.streams if self.first is None else identity[self.first]
        return self.read + start, self.write, self.mix + identity


class Stochastic(nn.Module):
    """A doubly stochastic mix, with read shares between 0 and 1 and write factors between 0 and 2."""

    def __init__(self, sizes: Sizes, streams: int, rounds: int, sharpness: float) -> None:
        super().__init__()
        self.streams, self.rounds, self.sharpness = streams, rounds, sharpness
        self.start = -math.log(streams - 1) if streams > 1 else 30.0  # a share of 1 / n
        self.read = constant(sizes, 1, 1, 1, streams, value=0.0)
        self.write = constant(sizes, 1, 1, streams, 1, value=0.0)
        self.mix = constant(sizes, 1, 1, streams, streams, value=0.0)

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        identity = torch.eye(self.streams, dtype=self.mix.dtype, device=self.mix.device)
        mix = (self.mix + self.sharpness * identity).softmax(-1)
        for _ in range(self.rounds):
            mix = mix / mix.sum(-2, keepdim=True)
            mix = mix / mix.sum(-1, keepdim=True)
        return (self.read + self.start).sigmoid(), 2 * self.write.sigmoid(), mix
