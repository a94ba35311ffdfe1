"""Run the networks of the recursion: one head without an output map, a ReLU MLP as wide as the state, norms without gain, skips of weight
one.

Each layer's weights are drawn when it is reached, so that depth needs no memory.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

from studies.claims.cosine_recursion.recursion import Regime
from studies.claims.draws import standard_normal, unit_deviation


def states(x: Tensor, layers: int, regime: Regime, seed: int, name: str, causal: bool = False) -> Iterator[Tensor]:
    """Yield the states (T, D) at layers 0 .. L, from normed tokens, in their number format."""
    yield x
    for layer in range(1, layers + 1):
        x = block(x, regime, seed, f"{name} {layer}", causal)
        yield x


@lru_cache(maxsize=512)  # the five maps of a hundred layers, shared by networks that differ otherwise
def draw(seed: int, width: int, name: str) -> Tensor:
    """Return N(0, 1) entries (D, D)."""
    return standard_normal(seed, width, width, name=name)


def block(x: Tensor, regime: Regime, seed: int, name: str, causal: bool) -> Tensor:
    """Return the states (T, D) after attention and MLP."""
    width = x.shape[-1]

    def apply_map(y: Tensor, variance: float, part: str) -> Tensor:
        return y @ ((variance / width) ** 0.5 * draw(seed, width, f"{name} {part}")).to(y)

    def bias(variance: float, part: str) -> Tensor:
        return variance**0.5 * standard_normal(seed, width, name=f"{name} {part} bias").to(x)

    def mlp(y: Tensor) -> Tensor:
        inner = (apply_map(y, regime.weight, "inner") + bias(regime.bias, "inner")).relu()
        return apply_map(inner, regime.weight, "outer") + bias(regime.bias, "outer")

    def attend(y: Tensor) -> Tensor:
        scale = regime.beta * math.log(len(y)) ** 0.5  # the deviation of scores
        scores = apply_map(y, scale, "query") @ apply_map(y, scale, "key").T * width**-0.5
        if causal:
            scores = scores.masked_fill(~torch.ones(len(y), len(y), dtype=torch.bool).tril(), -torch.inf)
        weights = scores.softmax(-1)
        if regime.centred:
            weights = weights - 1 / len(y)
        return weights @ apply_map(y, regime.value, "value") + bias(regime.value_bias, "value")

    if regime.pre:
        x = x + attend(unit_deviation(x))
        return x + mlp(unit_deviation(x))
    x = unit_deviation(x + attend(x))
    return unit_deviation(x + mlp(x))
