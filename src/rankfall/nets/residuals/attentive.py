"""Attention over layers in place of a sum (Kimi Team 2026, attention residuals): the state is a softmax mean of all earlier outputs.

    X <- sum_i a_i v_i,   a = softmax_i( w . N(v_i) )

over v_0, the input of the first layer, and v_1, v_2, ..., the outputs of the sublayers up to the present one. N is a root-mean-square norm
without gain, and w a learned vector of each sublayer, initially zero: then X is their mean. It replaces X itself, so no norm follows it,
and MLPs must use it as their residual too.
"""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Earlier, Sizes, constant, require_earlier

BREAKS = ("blocks",)
REFUSES = [({"norm_placement": "post", "norm": ["layer", "rms", "column", "by_depth"]}, "it adds up what has no norm")]
REQUIRES = [
    ({"residual": "attentive"}, "what attention makes is among what is added up"),
    ({"mlp_residual": ["attentive", None]}, "what MLPs make is among what is added up"),
]


class Attentive(nn.Module):
    asks_earlier = True

    def __init__(self, sizes: Sizes, *, eps: float = 1e-12) -> None:
        super().__init__()
        self.query = constant(sizes, 1, 1, 1, sizes.width, value=0.0)  # w (K, 1, 1, 1, D)
        self.eps = eps

    def forward(self, x: Tensor, branch: Tensor, earlier: Earlier | None = None) -> Tensor:
        branches = require_earlier(self, earlier).setdefault("branches", [x])
        branches.append(branch)
        values = torch.stack(branches, 2)  # (K, B, N, T, D)
        keys = values * (values.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        weights = (keys * self.query).sum(-1, keepdim=True).softmax(2)  # (K, B, N, T, 1)
        return (weights * values).sum(2)
