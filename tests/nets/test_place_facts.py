"""Check that the numbers of normalisers and positions do what these declare of rows and places (ROWS, SEES)."""

from typing import Any

import pytest
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Component
from rankfall.nets.network import make
from rankfall.nets.primitives import Sizes

T = 9
SIZES = Sizes(members=1, length=T, depth=1, width=8, heads=2, head_width=4, mlp_width=8, size_in=1, size_out=1)


def facts(kind: str, name: str) -> dict[str, Any]:
    described = components.describe(kind, name)
    return dict(described.facts) if described else {}


def make_drawn(kind: str, name: str) -> Any:
    """Return the component, every parameter drawn."""
    component = make(kind, Component(name), SIZES)
    if isinstance(component, torch.nn.Module):
        generator = torch.Generator().manual_seed(3)
        for value in component.double().parameters():
            value.data = torch.randn(value.shape, generator=generator, dtype=torch.float64)
    return component


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@pytest.mark.parametrize("name", components.names("normaliser"))
def test_rows_sum_to_what_a_normaliser_says(name: str) -> None:
    masked = drawn(1, 1, 2, T, T).masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf)
    sums = make_drawn("normaliser", name)(masked).sum(-1)
    declared = facts("normaliser", name)["ROWS"]
    if declared == "free":
        assert sums.std() > 1e-3
    else:
        wanted = sums[..., :1] if declared == "constant" else {"one": 1.0, "zero": 0.0}[declared]
        assert (sums - wanted).abs().max() < 1e-12


@pytest.mark.parametrize("name", components.names("normaliser"))
def test_a_normaliser_treats_places_as_it_says(name: str) -> None:
    """Equal scores: what differs between the weights of one row belongs to places."""
    weights = make_drawn("normaliser", name)(torch.full((1, 1, 2, T, T), 0.7, dtype=torch.float64))
    assert seen(weights) == facts("normaliser", name).get("SEES", "nothing")


@pytest.mark.parametrize("name", components.names("position"))
def test_a_position_sees_what_it_says(name: str) -> None:
    position, declared = make_drawn("position", name), facts("position", name)
    if "states" in declared["TOUCHES"]:
        x = position.embed(torch.ones(1, 1, T, 8, dtype=torch.float64))
        assert declared["SEES"] == "places"
        assert len(x.flatten(0, 2).unique(dim=0)) == T
        return
    q, k = (part.expand(-1, -1, -1, T, -1) for part in drawn(2, 1, 1, 2, 1, 4))  # the same at every place
    q, k = position.rotate(q, k)
    assert seen(position.bias(position.products(q, k))) == declared["SEES"]


def seen(weights: Tensor) -> str:
    """The least that entries (1, 1, H, T, T) depend on."""
    places = torch.arange(T)
    offset = places.unsqueeze(1) - places
    for name, labels in (("nothing", offset * 0), ("distances", offset.abs()), ("offsets", offset)):
        groups = [weights[..., labels == label] for label in labels.unique()]
        if all((group.amax(-1) - group.amin(-1)).max() < 1e-12 for group in groups):
            return name
    return "places"
