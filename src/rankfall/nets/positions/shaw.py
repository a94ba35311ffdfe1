"""Learned vectors for each offset, added to keys and to values (Shaw et al. 2018):

    scores q_i . (k_j + a_{i-j}) / sqrt(d),    o_i = sum_j P_ij (v_j + c_{i-j}).

sum_j P_ij c_{i-j} differs between positions even if all tokens are equal and rows of P sum to one. It does not depend on the values, so
weights and a head's map W_V W_O no longer describe the head completely: measures that need this are refused. It is part of `contexts`, so
a path through a head includes it. Options as for `shaw_keys`.
"""

from torch import Tensor

from rankfall.nets.positions._base import by_offsets, rows_of
from rankfall.nets.positions.shaw_keys import ShawKeys
from rankfall.nets.primitives import Initial, Sizes, parameter

TOUCHES = ("products", "values")
ADMITS = "any"
SEES = "offsets"
BREAKS = ("values",)
LIMITS = {"reach": (1, None)}


class Shaw(ShawKeys):
    def __init__(self, sizes: Sizes, *, reach: int = 16, shared: bool = True) -> None:
        super().__init__(sizes, reach=reach, shared=shared)
        width = sizes.value_width or sizes.head_width
        initial = Initial("position", "weight", width)
        self.values = parameter(sizes, 1, 1, 2 * reach + 1, width, initial=initial)  # (K, 1, 1, 2r + 1, d)

    def context(self, weights: Tensor, values: Tensor) -> Tensor:
        return weights @ values + by_offsets(weights) @ rows_of(self.values, weights.shape[-1])
