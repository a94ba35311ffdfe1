"""Normalisers with sinks, temperatures and norms of queries and keys: each against its formula, row by row in plain Python."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from rankfall import components
from rankfall.nets.attentions._heads import prepare
from rankfall.nets.primitives import Sizes

K, B, H, T, D = 2, 2, 3, 5, 4
SIZES = Sizes(K, T, 1, H * D, H, D, 6, 1, 1)


def made(name: str, **options: Any) -> Any:
    """In float64, every parameter away from where it starts and another for each member."""
    one = components.load("normaliser", name)(SIZES, **options).double()
    generator = torch.Generator().manual_seed(2)
    for value in one.parameters():
        value.data = 1 + 0.5 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
    return one.requires_grad_(False)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def hidden(causal: bool) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).triu(1) if causal else torch.zeros(T, T, dtype=torch.bool)


def rows(logits: Tensor) -> list[tuple[tuple[int, ...], list[float], int]]:
    """Where each row lies, its scores, and how many tokens it sees."""
    found = []
    for place in torch.cartesian_prod(*map(torch.arange, logits.shape[:-1])).tolist():
        row = logits[tuple(place)].tolist()
        found.append((tuple(place), row, sum(b > -math.inf for b in row)))
    return found


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(b) for b in row]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("eps", [0.0, 0.25])
def test_softpick_is_its_definition(eps: float) -> None:
    logits = (2 * drawn(K, B, H, T, T)).masked_fill(hidden(True), -math.inf)
    got = components.load("normaliser", "softpick")(logits, eps=eps)
    for place, row, _ in rows(logits):
        total = sum(abs(math.exp(b) - 1) for b in row if b > -math.inf) + eps
        want = [max(math.exp(b) - 1, 0.0) / total for b in row]
        torch.testing.assert_close(got[place], torch.tensor(want, dtype=torch.float64), rtol=1e-12, atol=1e-15)


def test_softpick_gives_nothing_to_scores_below_zero_and_its_gradient_is_finite() -> None:
    softpick = components.load("normaliser", "softpick")
    rows = [[900.0, -900.0, 1.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -1e-9]]
    scores = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    weights = softpick(scores)
    assert weights.sum(-1).tolist() == pytest.approx([1, 0, 0])
    weights.square().sum().backward()
    assert scores.grad is not None and scores.grad.isfinite().all()


def test_sink_is_a_softmax_with_one_more_key() -> None:
    sink, logits = made("sink"), (3 * drawn(K, B, H, T, T)).masked_fill(hidden(True), -math.inf)
    got = sink(logits)
    for place, row, _ in rows(logits):
        own = float(sink.score[place[0], 0, place[2], 0, 0])
        torch.testing.assert_close(
            got[place], torch.tensor(softmax([*row, own])[:-1], dtype=torch.float64), rtol=1e-12, atol=1e-15
        )
    sink.score.zero_()
    off_by_one = components.load("normaliser", "softmax_off_by_one")
    torch.testing.assert_close(sink(logits), off_by_one(logits), rtol=1e-13, atol=1e-15)
    assert sink(logits + 1e4).isfinite().all() and sink(logits - 1e4).sum() == 0


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", ["one", "log_n", "sqrt_log_n"])
@pytest.mark.parametrize("learned", [False, True])
def test_score_scale_is_its_formula(scale: str, learned: bool, causal: bool) -> None:
    one, logits = made("score_scale", scale=scale, factor=0.7, learned=learned), drawn(K, B, H, T, T)
    logits = logits.masked_fill(hidden(causal), -math.inf)
    got = one(logits)
    for place, row, seen in rows(logits):
        own = float(one.factor[place[0], 0, place[2], 0, 0]) if learned else 0.7
        own *= {"one": 1.0, "log_n": math.log(seen), "sqrt_log_n": math.sqrt(math.log(seen))}[scale]
        want = softmax([own * b if b > -math.inf else b for b in row])
        torch.testing.assert_close(got[place], torch.tensor(want, dtype=torch.float64), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("options", [{}, {"scale": "log_n", "learned": True}], ids=str)
def test_qk_norm_is_its_formula(norm: str, options: dict[str, Any]) -> None:
    one, (q, k) = made("qk_norm", norm=norm, **options), drawn(2, K, B, H, T, D)
    got = one(torch.matmul(*(lambda a, b: (a, b.transpose(-1, -2)))(*prepare(one, q, k))) * D**-0.5)

    def normed(vector: list[float], gain: list[float]) -> list[float]:
        mean = sum(vector) / D if norm == "layer" else 0.0
        size = math.sqrt(sum((x - mean) ** 2 for x in vector) / D)
        return [g * (x - mean) / size for g, x in zip(gain, vector)]

    for m, b, h, i in torch.cartesian_prod(*map(torch.arange, (K, B, H, T))).tolist():
        gains = [part[m].flatten().tolist() for part in (one.query, one.key)]
        mine = normed(q[m, b, h, i].tolist(), gains[0])
        times = float(one.factor[m, 0, h, 0, 0]) * math.log(T) if options else 1.0
        scores = [
            times * sum(x * y for x, y in zip(mine, normed(k[m, b, h, j].tolist(), gains[1]))) / math.sqrt(D)
            for j in range(T)
        ]
        torch.testing.assert_close(
            got[m, b, h, i], torch.tensor(softmax(scores), dtype=torch.float64), rtol=1e-10, atol=1e-12
        )
    again = prepare(one, 7 * q, 3 * k)
    assert all(torch.allclose(x, y) for x, y in zip(again, prepare(one, q, k)))
