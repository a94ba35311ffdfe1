"""The scale of attention's scores: all numbers that multiply queries, keys and their products, traced operation by operation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from rankfall.check.attention import SDPA, named_arguments
from rankfall.streams.branches import PRODUCTS_OF_TWO
from rankfall.streams.record import PRODUCTS, tensors_in

TIMES = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"})
OVER = frozenset({"div", "__truediv__", "div_", "__itruediv__", "__div__", "true_divide", "divide"})
NORMS = frozenset(
    {"rsqrt", "sqrt", "norm", "vector_norm", "normalize", "layer_norm", "rms_norm", "group_norm", "std", "var"}
)
EVEN = 0.5  # keys this share of sqrt(d) times as large as queries make up for a scale, as in T5


@dataclass(frozen=True)
class ScoreScale:
    """The numbers that multiply q k between the maps of queries and keys and the softmax: NaN if a norm or a weight does, too."""

    factor: float
    size: int = 0  # of a head; 0: not yet a product
    even: bool = True  # whether queries and keys are about equally large


UNKNOWN = ScoreScale(math.nan)


class ScoreScales:
    """Trace the scales of all tensors that follow from linear maps. Tensors are kept, so that Python uses no id twice."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Tensor, ScoreScale]] = {}

    def see(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Derive the scale of an operation's result from those of its arguments."""
        name, tensors = getattr(func, "__name__", ""), [tensor for _, tensor in tensors_in((args, kwargs))]
        scales = [self.known[id(tensor)][1] for tensor in tensors if id(tensor) in self.known]
        weights = sum(isinstance(tensor, nn.Parameter) for tensor in tensors)
        scale: ScoreScale | None = None
        if func in PRODUCTS or name.startswith("conv") or (name in PRODUCTS_OF_TWO and weights):
            scale = ScoreScale(1.0)
        elif name in PRODUCTS_OF_TWO and len(scales) == 2:
            scale = multiply_scales(scales[0], scales[1], tensors[-2], tensors[-1], kwargs.get("alpha", 1.0))
        elif scales:
            products = [product for product in scales if product.size]
            scale = (products or scales)[0]
            number = single_number(args)
            if name in NORMS or (weights and name in TIMES | OVER) or len(set(products or scales)) > 1:
                scale = ScoreScale(math.nan, scale.size)
            elif number and name in TIMES | OVER:
                factor = scale.factor * number if name in TIMES else scale.factor / number
                scale = ScoreScale(factor, scale.size, scale.even)
        if scale is not None:
            self.known.update({id(tensor): (tensor, scale) for _, tensor in tensors_in(result)})

    def of_attention(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ScoreScale:
        """Return the scale of the scores of a softmax, or of a fused attention."""
        if func is F.scaled_dot_product_attention:
            named = named_arguments(SDPA, args, kwargs)
            q, k = (named[name] for name in ("query", "key"))
            if id(q) in self.known and id(k) in self.known:
                scale = named.get("scale") or q.shape[-1] ** -0.5
                return multiply_scales(self.known[id(q)][1], self.known[id(k)][1], q, k.mT, scale)
            return UNKNOWN
        scores = (*args, *kwargs.values())[0]
        return self.known[id(scores)][1] if id(scores) in self.known else UNKNOWN


def multiply_scales(queries: ScoreScale, keys: ScoreScale, q: Tensor, k: Tensor, alpha: float) -> ScoreScale:
    """Return the scale of a product of queries and keys, which sums over their last axis."""
    sizes = [rms(x) for x in (q, k)]
    ratio = max(sizes) / min(sizes) if min(sizes) > 0 else 1.0
    width = q.shape[-1]
    return ScoreScale(queries.factor * keys.factor * alpha, width, ratio < EVEN * width**0.5)


def rms(x: Tensor) -> float:
    return float(x.detach().double().pow(2).mean().sqrt())


def single_number(args: tuple[Any, ...]) -> float | None:
    """Return the number by which an operation multiplies or divides a tensor, or None."""
    for argument in args[::-1]:
        if isinstance(argument, int | float) or (
            isinstance(argument, Tensor) and argument.numel() == 1 and argument.is_floating_point()
        ):
            return float(argument)
    return None
