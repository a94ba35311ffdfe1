"""Guards the influence tables: shares sum to one, networks of averaging layers agree with the closed form, training is what cells are."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import by_member, cells, data_of, network_of
from one_stack import chosen

from rankfall.identity.attribution.measure import attribution
from rankfall.identity.cell_influence.measure import cell_influence
from rankfall.identity.influence.measure import influence, measure_shares, stack
from rankfall.identity.jacobian import JACOBIAN, blocks_of
from rankfall.measure.context import Context
from rankfall.random_streams import stream
from rankfall.report.conform import conform


def test_an_untrained_stack_is_near_the_closed_form() -> None:
    rows = influence(Context(), length=24, depths=[2, 6], alphas=[0.3], width=16, heads=2, seeds=1)
    table = conform("influence", rows).to_pandas()
    places = table[table.place.notna()]
    sums = places.groupby(["source", "network", "position", "alpha", "depth", "seed"], dropna=False).share.sum()
    assert list(sums) == pytest.approx([1.0] * len(sums), abs=1e-12)
    whole = table[table.place.isna()]
    attention = whole[(whole.network == "attention") & (whole.depth == 6)]
    assert (attention.spearman > 0.95).all() and len(attention) == 2
    assert (
        attention.from_squares < 0.5 * attention.distance
    ).all()  # random maps add in squares, as its formula has it
    assert (whole[whole.source == "smoothed density"].distance < 1e-12).all()
    assert (whole[whole.source == "density"].distance > 1e-4).all()
    assert whole[whole.network == "pre-norm"].fitted.between(0, 1).all()
    first = {  # RoPE has no part in a network without scores, and some in one with them
        position: whole[(whole.network == "attention") & (whole.position == position)].distance.tolist()
        for position in ("none", "rope")
    }
    assert first["none"] != first["rope"]


@pytest.mark.parametrize("alpha", [0.3, None])
@pytest.mark.parametrize("directions", [3, 8])  # of a width of 8: some, and all
def test_all_samples_at_once_give_the_blocks_of_each(alpha: float | None, directions: int) -> None:
    network, rng, squares = stack(3, alpha, "rope", 8, 2, 6, seed=1), stream(1, "influence"), []
    for _ in range(4):
        x = torch.from_numpy(rng.normal(size=(6, 8)))
        layers = lambda states: [list(network.layers(states[None, None]))[depth][0, 0] for depth in (1, 3)]  # noqa: E731
        squares.append(blocks_of(layers, x, torch.tensor([5]), directions, rng)[JACOBIAN].mean(0)[:, 0])
    one_by_one = torch.stack(squares).mean(0).sqrt()
    together = measure_shares(network, [1, 3], 6, 1, 4, directions)
    assert torch.from_numpy(np.stack(together)).allclose(one_by_one / one_by_one.sum(1, keepdim=True), rtol=1e-12)


def context(**architecture: Any) -> Context:
    own = {"mask": "causal"} | architecture
    inputs = torch.randint(7, (2, 6, 5), generator=torch.Generator().manual_seed(1))
    made = network_of(dtype=torch.float32, **own)
    return Context(network=made, data=data_of(inputs), cells=2 * cells(architecture=own))


def test_cells_have_one_share_a_place() -> None:
    rows = by_member(cell_influence, context(sentinels="bos"), samples=2)
    assert {row["places"] for row in rows} == {6}
    for member in (0, 1):
        for layer in (1, 2):
            part = [row["share"] for row in rows if (row["member"], row["layer"]) == (member, layer)]
            assert len(part) == 6 and sum(part) == pytest.approx(1.0, rel=1e-12)
    given = context()
    # Of one sample, the mean over all tokens of their own shares; the last one's lies in the other table.
    labels = {"member": 1, "layer": 2, "method": "jacobian", "quantity": "own share", "kept_tokens": "all"}
    (own,) = chosen(by_member(attribution, given, samples=1), **labels)
    last = chosen(by_member(cell_influence, given, samples=1), member=1, layer=2)[-1]
    assert 0 < last["share"] < 5 * own["value"]
