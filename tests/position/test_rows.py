"""Check the count of distinct rows, whatever rounding does to them."""

import pytest
import torch

from rankfall.position.rows import TOLERANCE, distinct


def test_a_chain_of_nearly_equal_rows_is_one_group_and_shows_how_wide_it_is() -> None:
    steps = torch.arange(4, dtype=torch.float64) * 0.8 * TOLERANCE
    chain = distinct(torch.stack([1 + steps, torch.ones(4, dtype=torch.float64)], -1).unsqueeze(0))
    assert chain.rows.tolist() == [1]
    assert float(chain.widest) > 2 * TOLERANCE  # wider than the tolerance: the reader sees that the count is doubtful


def test_groups_and_both_margins_by_loops() -> None:
    """Rows are joined one after another where no entry differs by more than the tolerance; differences are of the set's largest entry."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randint(3, (40, 6, 2), generator=generator).double() + 0.02 * torch.rand(
        40, 6, 2, generator=generator, dtype=torch.float64
    )
    x = x * 10.0 ** torch.arange(40, dtype=torch.float64).view(-1, 1, 1)
    found, split = distinct(x, tolerance=0.005), 0
    for k, places in enumerate(x):
        size = float(places.abs().max())
        apart = [[float((one - other).abs().max()) / size for other in places] for one in places]
        first = list(range(6))
        for _ in range(6):
            first = [min(first[j] for j in range(6) if apart[i][j] <= 0.005) for i in range(6)]
        same = [apart[i][j] for i in range(6) for j in range(6) if first[i] == first[j]]
        between = [apart[i][j] for i in range(6) for j in range(6) if first[i] != first[j]]
        assert found.groups[k].tolist() == first and int(found.rows[k]) == len(set(first))
        assert float(found.widest[k]) == pytest.approx(max(same), rel=1e-12)
        assert float(found.narrowest[k]) == pytest.approx(min(between, default=torch.inf), rel=1e-12)
        split += max(same) > 0 and len(set(first)) > 2
    assert split > 10
