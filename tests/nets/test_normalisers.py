"""Normalisers against their definitions written out entry by entry, and what each keeps or loses of a row's sum."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rankfall import components
from rankfall.nets.attentions._heads import prepare
from rankfall.nets.primitives import Sizes

NAMES = (
    "softmax",
    "exp",
    "l2",
    "swish_l2",
    "relu",
    "relu2",
    "sigmoid",
    "softmax_off_by_one",
    "log_n",
    "relu2_sum",
    "zero_sum",
)
ONE_SUM = ("softmax", "log_n", "relu2_sum")
SIZES = Sizes(2, 4, 1, 6, 3, 2, 6, 1, 1)


def swish(b: float) -> float:
    return 0.0 if b == -math.inf else b / (1 + math.exp(-b))


def by_hand(name: str, row: list[float]) -> list[float]:
    """One row of weights in plain Python, straight from the definition."""
    e = [math.exp(b) for b in row]
    n = len(row)
    if name == "softmax":
        return [v / sum(e) for v in e]
    if name == "exp":
        return e
    if name == "l2":
        return [v / math.sqrt(sum(w * w for w in e)) for v in e]
    if name == "swish_l2":
        s = [swish(b) for b in row]
        return [v / math.sqrt(sum(w * w for w in s)) for v in s]
    if name == "relu":
        return [max(b, 0.0) / n for b in row]
    if name == "relu2":
        return [max(b, 0.0) ** 2 / n for b in row]
    if name == "sigmoid":
        return [1 / (1 + n * math.exp(-b)) if b > -math.inf else 0.0 for b in row]
    seen = sum(b > -math.inf for b in row)
    if name == "log_n":
        powers = [0.0 if b == -math.inf else math.exp(b * math.log(seen) / math.log(512)) for b in row]
        return [v / sum(powers) for v in powers]
    if name == "relu2_sum":
        squares = [max(b, 0.0) ** 2 for b in row]
        if not any(squares):
            return [float(b > -math.inf) / seen for b in row]
        return [v / sum(squares) for v in squares]
    if name == "zero_sum":
        return [0.0 if b == -math.inf else v / sum(e) - 1 / seen for b, v in zip(row, e)]
    return [v / (1 + sum(e)) for v in e]


@pytest.mark.parametrize("name", NAMES)
def test_normaliser_is_its_definition(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(2, 3, 5, 5, generator=generator, dtype=torch.float64)
    logits = logits.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -math.inf)
    got = components.load("normaliser", name)(logits)
    rows = [[[by_hand(name, row) for row in head] for head in sample] for sample in logits.tolist()]
    want = torch.tensor(rows, dtype=torch.float64)
    torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-15)
    assert not got.masked_select(logits == -math.inf).any()


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_finite_behind_a_mask(name: str) -> None:
    """A masked pair has weight zero and no say in the gradient; -inf must not become NaN on the way back."""
    scores = torch.linspace(-2, 2, 9, dtype=torch.float64).view(3, 3).requires_grad_()
    logits = scores.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -math.inf)
    components.load("normaliser", name)(logits).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert not scores.grad.triu(1).any()


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4), st.floats(-30, 30))
@settings(max_examples=50, deadline=None)
def test_shift_invariance(row: list[float], shift: float) -> None:
    """softmax and l2 forget what a whole row has in common; the others carry it in the row's sum."""
    logits = torch.tensor([row], dtype=torch.float64)
    for name in ("softmax", "l2", "zero_sum", "log_n"):
        normaliser: Callable[[Tensor], Tensor] = components.load("normaliser", name)
        torch.testing.assert_close(normaliser(logits + shift), normaliser(logits), rtol=1e-11, atol=1e-13)
    for name in ("exp", "sigmoid", "softmax_off_by_one"):
        sums = [float(components.load("normaliser", name)(logits + s).sum()) for s in (-1.0, 1.0)]
        assert sums[0] < sums[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_without_a_positive_score_and_a_row_of_one(name: str) -> None:
    """No 0 / 0, forward or back: all scores negative, all zero, one token left, and scores as small as float64 has them."""
    rows = [[-1.0, -2.0, -3.0], [0.0, 0.0, 0.0], [-math.inf, -0.5, -math.inf], [1e-200, -1.0, 1e-200]]
    scores = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    weights = components.load("normaliser", name)(scores)
    assert weights.isfinite().all()
    weights.square().sum().backward()
    assert scores.grad is not None and scores.grad[:2].isfinite().all() and scores.grad[2, 1].isfinite()
    if name in ONE_SUM:
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, dtype=torch.float64))


def test_log_n_is_softmax_at_its_own_length() -> None:
    logits = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    log_n = components.load("normaliser", "log_n")
    torch.testing.assert_close(log_n(logits, length=8), logits.softmax(-1), rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(log_n(logits, length=64), (logits / 2).softmax(-1), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "options"), [("cosine", {}), ("cosine", {"scale": 7.0, "log_n": False}), ("key_normalised", {})], ids=str
)
@pytest.mark.parametrize("causal", [False, True])
def test_lengths_of_queries_and_keys(name: str, options: dict[str, float], causal: bool) -> None:
    """As an attention uses them, against a double loop; the lengths that are taken off have no effect."""
    one = components.load("normaliser", name)(SIZES, **options)
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(2, 1, 3, 5, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else torch.zeros(5, 5, dtype=torch.bool)

    def weights(q: Tensor, k: Tensor) -> Tensor:
        q, k = prepare(one, q, k)
        return one((q @ k.transpose(-1, -2) * 4**-0.5).masked_fill(hidden, -math.inf))

    got = weights(q, k)
    for m, h, i in ((0, 0, 0), (1, 2, 4), (0, 1, 2)):
        seen = [j for j in range(5) if not hidden[i, j]]
        scores = []
        for j in seen:
            a, b = q[m, 0, h, i].tolist(), k[m, 0, h, j].tolist()
            product = sum(x * y for x, y in zip(a, b)) / math.hypot(*b)
            if name == "cosine":
                product *= (
                    options.get("scale", 4.0)
                    / math.hypot(*a)
                    * (math.log(len(seen)) if options.get("log_n", True) else 1)
                )
            scores.append(math.exp(product))
        want = torch.zeros(5, dtype=torch.float64)
        want[seen] = torch.tensor([s / sum(scores) for s in scores], dtype=torch.float64)
        torch.testing.assert_close(got[m, 0, h, i], want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weights(q, 3 * k), got)
    assert torch.allclose(weights(3 * q, k), got) is (name == "cosine")


def test_urpe_starts_as_softmax_and_scales_by_distance() -> None:
    urpe = components.load("normaliser", "urpe")(SIZES).double()
    urpe.excess.data.zero_()
    logits = torch.randn(2, 5, 3, 4, 4, dtype=torch.float64)
    torch.testing.assert_close(urpe(logits), logits.softmax(-1), rtol=0, atol=0)
    urpe.excess.data = torch.arange(2 * 3 * 7, dtype=torch.float64).view(2, 1, 3, 7)
    factors = urpe(logits) / logits.softmax(-1)
    for k, h, i, j in ((0, 0, 0, 0), (1, 2, 3, 0), (0, 1, 0, 3)):
        want = torch.full((5,), 1 + urpe.excess[k, 0, h, 3 + i - j].item(), dtype=torch.float64)
        torch.testing.assert_close(factors[k, :, h, i, j], want)


def test_urpe_clipped_takes_any_length() -> None:
    """Offsets beyond the clip have the clip's factor, at the trained length already."""
    urpe = components.load("normaliser", "urpe")(SIZES, clip=2)
    urpe.excess.data = torch.arange(2 * 3 * 5.0).view(2, 1, 3, 5)
    factors = urpe.factors(7)
    for i in range(7):
        for j in range(7):
            want = 1 + urpe.excess[..., max(-2, min(2, i - j)) + 2]
            torch.testing.assert_close(factors[..., i, j], want)
