"""Attentions that share nothing with multi-head: right against double loops, and members and samples do not meet in them."""

import math
from typing import Any

import exact
import mpmath as mp
import pytest
import torch
from one_layer import network, states
from torch import Tensor

from rankfall.nets.attentions import linear

EXACT = 1e-12


def mapped(x: Tensor, weight: Tensor) -> list[float]:
    return [float(sum(x[i] * weight[i, j] for i in range(len(x)))) for j in range(weight.shape[1])]


def gau_by_hand(unit: Any, name: str, x: Tensor, k: int, bias: Tensor, causal: bool) -> Tensor:
    """x (T, D) of member k, sums written out."""
    count, s = len(x), unit.key_width
    gate, value, shared = (
        [[v / (1 + math.exp(-v)) for v in mapped(t, m.weight[k])] for t in x]
        for m in (unit.gate, unit.value, unit.shared)
    )
    gain, shift = unit.gain[k].reshape(2, s), unit.bias[k].reshape(2, s)
    rows = []
    for i in range(count):
        scores = []
        for j in range(count):
            product = sum(
                (shared[i][c] * gain[0, c] + shift[0, c]) * (shared[j][c] * gain[1, c] + shift[1, c]) for c in range(s)
            )
            scores.append(None if causal and j > i else mp.mpf(float(product) / math.sqrt(s) + float(bias[i, j])))
        weights = [float(weight) for weight in exact.normalised(name, scores, [])]
        mixed = [gate[i][e] * sum(weights[j] * value[j][e] for j in range(count)) for e in range(len(gate[i]))]
        rows.append(mapped(torch.tensor(mixed, dtype=torch.float64), unit.output.weight[k]))
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("name", ["relu2", "softmax"])
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("position", ["none", "toeplitz"])
def test_the_gated_unit_is_its_formula(name: str, mask: str, position: str) -> None:
    made = network(attention={"name": "gau", "key_width": 5}, normaliser=name, mask=mask, position=position)
    unit, x = made.blocks[0].attention, states(4)
    got = unit(x)
    for k in range(2):
        zero = torch.zeros(2, 1, 1, 4, 4, dtype=torch.float64)
        bias = made.position.bias(zero)[k, 0, 0]
        for b in range(3):
            want = gau_by_hand(unit, name, x[k, b], k, bias, mask == "causal")
            assert (got[k, b] - want).abs().max() <= EXACT * want.abs().max()


def linear_by_hand(layer: Any, feature: str, x: Tensor, k: int, causal: bool) -> Tensor:
    def f(v: float) -> float:
        return math.exp(v) if feature == "exp" else (v + 1 if v > 0 else math.exp(v))

    def map_of(part: Any) -> list[list[float]]:
        return [[v + float(part.bias[k, 0, c]) for c, v in enumerate(mapped(t, part.weight[k]))] for t in x]

    q, key, value = (map_of(part) for part in (layer.query, layer.key, layer.value))
    d, rows = layer.head_width, []
    for i in range(len(x)):
        context = []
        for h in range(layer.heads):
            part = range(h * d, (h + 1) * d)
            seen = range(i + 1) if causal else range(len(x))
            weights = [sum(f(q[i][c]) * f(key[j][c]) for c in part) for j in seen]
            context += [sum(w * value[j][c] for w, j in zip(weights, seen)) / sum(weights) for c in part]
        rows.append(context)
    y = [mapped(torch.tensor(row, dtype=torch.float64), layer.output.weight[k]) for row in rows]
    return torch.tensor(y, dtype=torch.float64) + layer.output.bias[k, 0]


@pytest.mark.parametrize("feature", ["elu", "exp"])
@pytest.mark.parametrize(("mask", "length"), [("none", 5), ("causal", 5), ("causal", 2 * linear.CHUNK + 3)])
def test_linear_attention_is_its_formula(feature: str, mask: str, length: int) -> None:
    """Also where a causal sum takes several chunks, the last of them shorter."""
    made = network(length, attention={"name": "linear", "feature": feature}, mask=mask, heads=2)
    layer, x = made.blocks[0].attention, states(length)
    got = layer(x)
    for k, b in ((0, 0), (1, 2)):
        want = linear_by_hand(layer, feature, x[k, b], k, mask == "causal")
        assert (got[k, b] - want).abs().max() <= EXACT * want.abs().max()
