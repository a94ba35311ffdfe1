"""Check normalisers against their definitions, entry by entry, and at scores where a careless formula divides by zero."""

import math

import exact
import mpmath as mp
import pytest
import torch
from torch import Tensor

from rankfall import components
from rankfall.nets.attentions._heads import prepare
from rankfall.nets.primitives import Sizes

ONE_SUM = ("softmax", "log_n", "relu2_sum")
NAMES = (*ONE_SUM, "exp", "l2", "swish_l2", "relu", "relu2", "sigmoid", "softmax_off_by_one", "zero_sum")
SIZES = Sizes(2, 4, 1, 6, 3, 2, 6, 1, 1)


def by_definition(name: str, row: list[float]) -> list[float]:
    """Return one row of weights in 30 digits, as plain numbers."""
    with mp.workdps(30):
        scores = [None if score == -math.inf else mp.mpf(score) for score in row]
        return [float(weight) for weight in exact.normalised(name, scores, [])]


@pytest.mark.parametrize("name", NAMES)
def test_normaliser_is_its_definition(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(2, 3, 5, 5, generator=generator, dtype=torch.float64)
    logits = logits.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -math.inf)
    weights = components.load("normaliser", name)(logits)
    rows = [[[by_definition(name, row) for row in head] for head in sample] for sample in logits.tolist()]
    torch.testing.assert_close(weights, torch.tensor(rows, dtype=torch.float64), rtol=1e-13, atol=1e-15)
    assert not weights.masked_select(logits == -math.inf).any()


@pytest.mark.parametrize("name", NAMES)
def test_no_row_divides_zero_by_zero_forward_or_back(name: str) -> None:
    """All scores negative, all zero, one token left by a mask, and scores as small as float64 has them; a masked pair has no gradient."""
    rows = [[-1.0, -2.0, -3.0], [0.0, 0.0, 0.0], [9.0, -0.5, 9.0], [1e-200, -1.0, 1e-200]]
    scores = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    masked = scores == 9.0
    weights = components.load("normaliser", name)(scores.masked_fill(masked, -math.inf))
    assert weights.isfinite().all()
    weights.square().sum().backward()
    assert scores.grad is not None and scores.grad.isfinite().all() and not scores.grad[masked].any()
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
    normaliser = components.load("normaliser", name)(SIZES, **options)
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(2, 1, 3, 5, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else torch.zeros(5, 5, dtype=torch.bool)

    def weights(q: Tensor, k: Tensor) -> Tensor:
        q, k = prepare(normaliser, q, k)
        return normaliser((q @ k.transpose(-1, -2) * 4**-0.5).masked_fill(hidden, -math.inf))

    got = weights(q, k)
    for m, h, i in ((0, 0, 0), (1, 2, 4), (0, 1, 2)):
        seen = [j for j in range(5) if not hidden[i, j]]
        scores = []
        for j in seen:
            a, b = q[m, 0, h, i].tolist(), k[m, 0, h, j].tolist()
            product = sum(x * y for x, y in zip(a, b)) / math.hypot(*b)
            if name == "cosine":
                product *= options.get("scale", 4.0) / math.hypot(*a)
                product *= math.log(len(seen)) if options.get("log_n", True) else 1
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
