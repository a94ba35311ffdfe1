"""The residual table: places, floors and values against a computation by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import cells

from rankfall.measures.residuals import places, residuals
from rankfall.nets.network import Network, Shape, build
from rankfall.train.loop import Data

INPUTS = torch.randint(7, (2, 6, 5), generator=torch.Generator().manual_seed(1))
DATA = Data(INPUTS, INPUTS, INPUTS, INPUTS, torch.zeros(2))


def network(depth: int = 2, **architecture: Any) -> Network:
    cell = cells(architecture={"depth": depth, "heads": 2, "width": 8} | architecture)[0]
    made = build(cell.architecture, Shape("tokens", "classes", length=5, size_in=7, size_out=7), 2, torch.float32)
    made.initialise([0, 1])
    return made.requires_grad_(False)


def chosen(rows: list[dict[str, Any]], **labels: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in labels.items())]


def test_values_by_hand() -> None:
    made = network()
    rows = residuals(made, DATA, [None, None])  # type: ignore[list-item]
    x = made.double().states(INPUTS)[2][1].numpy()  # second member, last layer
    rest = x - x.mean(1, keepdims=True)
    ratios = [
        np.sqrt(np.linalg.norm(r, 1) * np.linalg.norm(r, np.inf))
        / np.sqrt(np.linalg.norm(m, 1) * np.linalg.norm(m, np.inf))
        for r, m in zip(rest, x)
    ]
    (row,) = chosen(rows, member=1, layer=2, place="state", quantity="residual", matrix_norm="composite", centre="mean")
    assert row["value"] == pytest.approx(np.mean(ratios))
    assert row["deviation"] == pytest.approx(np.std(ratios, ddof=1))
    (row,) = chosen(rows, member=1, layer=2, place="state", quantity="sigma_ratio")
    spectra = np.linalg.svd(x, compute_uv=False)
    assert row["value"] == pytest.approx(np.mean(spectra[:, 1] / spectra[:, 0]))
    (row,) = chosen(rows, member=1, layer=2, place="state", quantity="numerical_rank")
    assert row["value"] == pytest.approx(np.mean([np.linalg.matrix_rank(m) for m in x]))


def test_best_centre_is_no_worse_than_the_mean() -> None:
    rows = residuals(network(), DATA, [None, None])  # type: ignore[list-item]
    for norm in ("composite", "l1", "linf", "frobenius"):
        best, mean = (
            [row["value"] for row in chosen(rows, place="state", quantity="residual", matrix_norm=norm, centre=centre)]
            for centre in ("best", "mean")
        )
        assert len(best) == 6
        assert all(b <= m * (1 + 1e-12) for b, m in zip(best, mean))


def test_collapse_is_flagged_at_the_floor() -> None:
    """Attention alone is at rounding noise by the fourth layer, and with skip connections never."""
    for residual, share in (("none", 1.0), ("add", 0.0)):
        rows = residuals(
            network(depth=4, residual=residual, norm="none", position="none"), DATA, [None, None], best=False
        )  # type: ignore[list-item]
        last = chosen(rows, layer=4, place="state", quantity="residual", matrix_norm="composite")
        assert [row["floor_share"] for row in last] == [share, share]


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_places_are_around_the_norms(placement: str) -> None:
    made = network(mlp="gelu", norm_placement=placement, sentinels="bos").double()
    found = list(places(made, INPUTS))
    states = [x for _, place, x in found if place == "state"]
    for got, want in zip(states, made.states(INPUTS)):
        torch.testing.assert_close(got, want[:, :, 1:])
    labels = {(layer, place) for layer, place, _ in found}
    assert {(1, "before norm1"), (1, "after norm1"), (2, "before norm2"), (2, "after norm2")} <= labels
    assert ((0, "after norm_in") in labels) is (placement == "post")
    assert ((2, "after norm_out") in labels) is (placement == "pre")
    assert all(x.shape[2] == 5 for _, _, x in found)
    assert not any(block.norm1._forward_hooks for block in made.blocks)
