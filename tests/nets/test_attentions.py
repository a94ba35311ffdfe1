"""Attentions that share nothing with multi-head: right against double loops, and members and samples do not meet in them."""

import math
from typing import Any

import pytest
import torch
from helpers import cells
from one_layer import network, states
from torch import Tensor
from torch.nn.functional import silu

from rankfall.nets.attentions import linear
from rankfall.nets.network import Network, Shape, build

EXACT = 1e-12


def mapped(x: Tensor, weight: Tensor) -> list[float]:
    return [float(sum(x[i] * weight[i, j] for i in range(len(x)))) for j in range(weight.shape[1])]


def normalised(name: str, row: list[float], count: int) -> list[float]:
    if name == "relu2":
        return [max(v, 0.0) ** 2 / count for v in row]
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


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
            hidden = causal and j > i
            scores.append(-math.inf if hidden else float(product) / math.sqrt(s) + float(bias[i, j]))
        weights = normalised(name, scores, count)
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


def test_the_gated_unit_starts_as_its_analysis_says() -> None:
    """relu^2 weights on the diagonal over others: (s^2 nu^4 + ...) / (s^2 mu^4 + ...), 69 for many dimensions s and less for few; and
    about s nu^6 / n, a hundredth of the input, from each token's own value. The whole output is five times as large: values have a mean,
    mu, and the small weights of all other tokens add up."""
    z = silu_moments()
    assert z[1] == pytest.approx(0.2066, abs=1e-4) and z[2] == pytest.approx(0.3557, abs=1e-4)
    assert z[2] ** 2 / z[1] ** 4 == pytest.approx(69, abs=0.5)
    made = of_width_256(512, "published")
    unit, s, n = made.blocks[0].attention, 128, 512
    with torch.no_grad():
        x = states(n, 1, 256)[:, :1]
        weights = unit.weights(x)[0, 0, 0]
        diagonal = float(weights.diagonal().mean())
        rest = float((weights.sum() - weights.diagonal().sum()) / (n * (n - 1)))
        own = silu(unit.gate(x)) * weights.diagonal().unsqueeze(1) * silu(unit.value(x))
        size = float(unit.output(own).square().mean().sqrt())
    expected = (s**2 * z[2] ** 2 + s * (z[4] - z[2] ** 2)) / (s**2 * z[1] ** 4 + s * (z[2] ** 2 - z[1] ** 4))
    assert diagonal / rest == pytest.approx(expected, rel=0.1)
    assert diagonal == pytest.approx((s**2 * z[2] ** 2 + s * (z[4] - z[2] ** 2)) / (s * n), rel=0.05)
    assert size == pytest.approx(float(weights.diagonal().square().mean().sqrt()) * z[2], rel=0.05)
    assert size == pytest.approx(s * z[2] ** 3 / n, rel=0.25) and s * z[2] ** 3 / n == pytest.approx(0.011, abs=5e-4)
    sums, squares = weights.sum(-1).square().mean(), weights.square().sum(-1).mean()
    whole = math.sqrt(z[2] * float(sums * z[1] ** 2 + squares * (z[2] - z[1] ** 2)))
    with torch.no_grad():
        assert float(unit(x).square().mean().sqrt()) == pytest.approx(whole, rel=0.1)
    assert 4 < whole / size < 7


def silu_moments() -> dict[int, float]:
    """E f(x)^p for a normal x."""
    x = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    density = torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return {p: float(torch.trapezoid((x * torch.sigmoid(x)) ** p * density, x)) for p in (1, 2, 4)}


def of_width_256(length: int, init: Any) -> Network:
    unit = {"depth": 1, "width": 256, "attention": "gau", "normaliser": "relu2", "norm": "none", "position": "none"}
    made = build(
        cells(architecture=unit | {"init": init})[0].architecture,
        Shape("tokens", "classes", length, 5, 5),
        1,
        torch.float64,
    )
    made.initialise([0])
    return made
