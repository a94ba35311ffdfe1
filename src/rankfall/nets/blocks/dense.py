"""Dense connections by weighted means over depth (Pagliardini et al. 2024): the output of a block is mixed with all earlier outputs.

    Y_l = sum_{i <= l} a_li X_i,   X_i = block_i(Y_(i-1)),   X_0 = Y_0 the input of the first block

with learned numbers a_li. `start`: `last`, as published, a_ll = 1 and all others 0, which is initially the network without dense
connections; or `mean`, all equal.
"""

from typing import Any, Literal

from torch import Tensor

from rankfall.nets.blocks.attention import Attention
from rankfall.nets.primitives import Dropout, Earlier, Sizes, constant, no_dropout, require_earlier

BREAKS = ("blocks",)
TOKENWISE = True


class Dense(Attention):
    asks_earlier = True

    def __init__(self, *, sizes: Sizes, start: Literal["last", "mean"] = "last", **parts: Any) -> None:
        super().__init__(**parts)
        self.start = start
        # a_li minus their initial values, (K, l + 1)
        self.shares = constant(sizes, sizes.layer + 1, value=0.0)

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        outputs = require_earlier(self, earlier).setdefault("outputs", [])
        if not outputs:
            outputs.append(x)
        outputs.append(super().forward(x, drop, earlier))
        start = [
            float(i == len(outputs) - 1) if self.start == "last" else 1 / len(outputs) for i in range(len(outputs))
        ]
        shares = [(self.shares[:, i] + start[i]).view(-1, 1, 1, 1) for i in range(len(outputs))]
        total = shares[0] * outputs[0]
        for share, state in zip(shares[1:], outputs[1:]):
            total = total + share * state
        return total
