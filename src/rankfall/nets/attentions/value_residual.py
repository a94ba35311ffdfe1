"""Multi-head attention that adds the values of the first layer in every layer.

- `where: values` (Zhou et al. 2024, value residual): V_l <- (1 - s) V_l + s V_1 before they are mixed, s = .5 as published;
- `where: outputs` (Nguyen et al. 2023, NeuTRENO): P_l V_l + s (V_1 - V_l), s = .4 in the code of the former.

`share`: s; `learned`: s is learned by layer, starting at `share`. In the first layer V_1 is V_l, and both are the usual attention.

Near identical rows, the differences between rows in the first layer pass to all later layers, as through a skip connection.
"""

from typing import Any, Literal

from torch import Tensor

from rankfall.nets.attentions._heads import Heads
from rankfall.nets.primitives import Dropout, Earlier, Sizes, constant, no_dropout, require_earlier

PROVIDES = ("weights",)
OFFERS = ("queries", "products", "scores", "values", "lengths")
ROWS = "normaliser"
BREAKS = ("blocks",)


class ValueResidual(Heads):
    asks_earlier = True

    def __init__(
        self,
        sizes: Sizes,
        *parts: Any,
        where: Literal["values", "outputs"] = "values",
        share: float = 0.5,
        learned: bool = False,
    ) -> None:
        super().__init__(sizes, *parts)
        self.where = where
        is_first = sizes.layer == 1  # where the share has no effect
        self.share: Tensor | float = constant(sizes, 1, 1, 1, 1, value=share) if learned and not is_first else share

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        weights = drop(self.weights(x), f"{self.site}.weights")
        values = self.split(self.value(x))  # (K, B, H, T, d)
        first = require_earlier(self, earlier).setdefault("values", [values])[0]
        if first is values:
            context = self.position.context(weights, values)
        elif self.where == "values":
            context = self.position.context(weights, values + self.share * (first - values))
        else:
            context = self.position.context(weights, values) + self.share * (first - values)
        return self.output(context.transpose(2, 3).flatten(-2))
