"""Check random weights, and the count of distinct rows, whatever rounding does to them."""

import pytest
import torch
from helpers import cells

from rankfall.nets.network import Shape
from rankfall.nets.primitives import Initial
from rankfall.position.rows import TOLERANCE, distinct, draw_initial, last_rows, random_networks


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


def test_every_parameter_is_the_same_draw_times_the_size_of_its_kind() -> None:
    normal = draw_initial("a", Initial("embedding", "weight", 9), (200, 3), 2)
    assert normal.shape == (2, 200, 3) and not torch.equal(normal[0], normal[1])
    assert 0.9 < float(normal.std()) < 1.1
    for start, expected in (
        (Initial("query", "weight", 9), normal / 3),
        (Initial("query", "bias", 9), 0.5 * normal),
        (Initial("position", "weight", 9), 0.5 * normal),
        (Initial("norm", "constant", 9, 1.0), 1 + 0.5 * normal),
    ):
        torch.testing.assert_close(draw_initial("a", start, (200, 3), 2), expected, rtol=1e-12, atol=0)


def test_the_last_rows_are_those_of_equal_tokens_without_sentinels() -> None:
    options = {"position": "learned", "sentinels": "bos", "depth": 1, "heads": 2, "width": 8}
    design = cells(architecture=options)[0].architecture
    network = random_networks(design, Shape("tokens", "classes", 5, 3, 5), 2)
    found = last_rows(network, 5)
    assert found.shape == (2, 5, 8)
    with torch.no_grad():
        torch.testing.assert_close(
            found, network.features(torch.zeros(2, 3, 5, dtype=torch.int64))[:, 2], rtol=1e-12, atol=0
        )
