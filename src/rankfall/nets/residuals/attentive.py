"""Attention over layers in place of a sum (Kimi Team 2026, attention residuals): the state is a softmax mean of all that was made so far.

    X <- sum_i a_i v_i,   a = softmax_i( w . N(v_i) )

over v_0, what entered the first layer, and v_1, v_2, ..., what each sublayer made, the last included; N is a root-mean-square norm without
gain, w a learned vector of each sublayer, zero at first: then X is their mean. It stands for X itself, so no norm comes after it, and
where there are MLPs it is their residual too.
"""

import torch
from torch import Tensor, nn

from rankfall.nets.earlier import Earlier, require_earlier
from rankfall.nets.primitives import Sizes, constant

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
        made = require_earlier(self, earlier).setdefault("branches", [x])
        made.append(branch)
        values = torch.stack(made, 2)  # (K, B, N, T, D)
        keys = values * (values.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        weights = (keys * self.query).sum(-1, keepdim=True).softmax(2)  # (K, B, N, T, 1)
        mean: Tensor = (weights * values).sum(2)
        return mean
