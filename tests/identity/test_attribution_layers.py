"""Estimates from several directions: the jackknife by a loop that leaves each of them out."""

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from rankfall.identity.attribution.layers import ALL, WITHOUT_FIRST, bootstrap_median, share_rows
from rankfall.identity.shares import NOT_FIRST, OWN

TOKENS = torch.tensor([[1, 3, 0], [2, 1, 3]])


def own_shares(squares: Tensor, first: int) -> Tensor:
    """Of contributions whose squares (S, N, T) are estimated, without the tokens before the first."""
    found = []
    for sample, rows in enumerate(squares):
        for place, row in enumerate(rows):
            sizes, own = row.sqrt(), int(TOKENS[sample, place])
            found += [sizes[own] / sizes[first:].sum()] * (own >= first)
    return torch.stack(found)


@pytest.mark.parametrize("directions", [1, 2, 3])
@pytest.mark.parametrize(("kept", "first"), [(ALL, 0), (WITHOUT_FIRST, 1)])
def test_the_error_of_a_share_is_that_of_leaving_out_each_direction(directions: int, kept: str, first: int) -> None:
    squares = torch.rand(directions, 2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = {row["quantity"]: row for row in share_rows({"jacobian": squares}, TOKENS, {}) if row["kept_tokens"] == kept}
    row, whole = rows[OWN], own_shares(squares.mean(0), first)
    assert row["value"] == pytest.approx(float(whole.mean()), rel=1e-12)
    assert row["median"] == pytest.approx(float(whole.quantile(0.5)), rel=1e-12)
    assert rows[NOT_FIRST]["value"] is not None and rows[NOT_FIRST]["median"] is None
    if directions == 1:
        assert row["directions"] is row["error"] is row["median_error"] is None
        return
    left_out = [
        own_shares(torch.stack([one for number, one in enumerate(squares) if number != out]).mean(0), first)
        for out in range(directions)
    ]
    means, medians = (torch.stack(each) for each in zip(*((one.mean(), one.quantile(0.5)) for one in left_out)))
    assert row["directions"] == directions
    assert row["error"] == pytest.approx(float((directions - 1) * means.var(correction=0)) ** 0.5, rel=1e-9)
    assert row["median_error"] == pytest.approx(float((directions - 1) * medians.var(correction=0)) ** 0.5, rel=1e-9)
    assert rows[NOT_FIRST]["error"] is not None and rows[NOT_FIRST]["median_error"] is None


def test_the_interval_of_a_median_is_over_texts_and_not_over_tokens() -> None:
    """Tokens of a text are alike: drawn one by one, 32 times as many of them would seem to be known 6 times as well."""
    rng = np.random.default_rng(0)
    text = rng.normal(size=(40, 1))
    values = text + 0.01 * rng.normal(size=(40, 32))
    low, high = bootstrap_median(values)
    expected = scipy.stats.bootstrap((text[:, 0],), np.median, method="percentile", rng=rng).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.05)
    assert low < np.median(values) < high
