"""Hyper-connections whose numbers depend on the token (Zhu et al. 2024, the dynamic kind): like `hyper` with free maps, plus a dynamic part

    a_m   + s tanh(N(S_m) . w_a),      R_mk + s tanh(N(S_k) . w_m),      b_m + s' tanh(N(S_m) . w_b)

for each token separately. S_m is its stream m, and N a layer norm without gain and bias. The vectors w_a, w_b and w_1 .. w_n of the
sublayer are learned and initially zero. The numbers s and s' are learned and initially `scale`. So a network starts as one with skip
connections. Each number changes by less than s, so a map stays near its static part while s is small.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from rankfall.nets.blocks.hyper import Hyper
from rankfall.nets.primitives import Sizes, constant

BREAKS = ("blocks", "weights", "heads", "values")
TOKENWISE = True
LIMITS = {"streams": (1, None)}
REQUIRES = [({"residual": "add"}, "streams are mixed by maps of their own")]
EPS = 1e-12


class DynamicHyper(Hyper):
    def __init__(
        self,
        *,
        sizes: Sizes,
        streams: int = 4,
        read: Literal["turns", "mean"] = "turns",
        scale: float = 0.01,
        **parts: Any,
    ) -> None:
        super().__init__(sizes=sizes, streams=streams, mixing="free", read=read, **parts)
        self.around1 = Dynamic(sizes, streams, scale, self.around1)
        self.around2 = None if self.around2 is None else Dynamic(sizes, streams, scale, self.around2)

    def sublayer(self, x: Tensor, function: Any, norm: Any, around: Any) -> Tensor:
        streams = x.unflatten(-1, (self.streams, -1))  # (K, B, T, n, D)
        return super().sublayer(x, function, norm, lambda: around(streams))


class Dynamic(nn.Module):
    """Static numbers plus a part that depends on the streams."""

    def __init__(self, sizes: Sizes, streams: int, scale: float, static: nn.Module) -> None:
        super().__init__()
        self.static = static
        self.read = constant(sizes, 1, 1, sizes.width, 1, value=0.0)
        self.write = constant(sizes, 1, 1, sizes.width, 1, value=0.0)
        self.mix = constant(sizes, 1, 1, sizes.width, streams, value=0.0)
        self.scale, self.write_scale = (constant(sizes, 1, 1, 1, 1, value=scale) for _ in range(2))

    def forward(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return read (K, B, T, 1, n), write (K, B, T, n, 1) and mix (K, B, T, n, n) for streams (K, B, T, n, D)."""
        read, write, mix = self.static()
        normed = layer_norm(streams, streams.shape[-1:], eps=EPS)
        # A row of R gives the new value of one stream, a column the contribution of one stream. That stream determines its column.
        read = read + self.scale * torch.tanh(normed @ self.read).transpose(-1, -2)
        mix = mix + self.scale * torch.tanh(normed @ self.mix).transpose(-1, -2)
        return read, write + self.write_scale * torch.tanh(normed @ self.write), mix
