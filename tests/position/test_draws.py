"""Random weights: how large each kind of parameter is, and that equal tokens are what networks are asked."""

import torch
from helpers import cells

from rankfall.nets.network import Shape
from rankfall.nets.primitives import Initial
from rankfall.position.rows import draw_initial, last_rows, random_networks


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
