"""Experiments of claims: a seed's numbers do not depend on the others', and every rule decides at a tiny size."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch

from rankfall import components
from rankfall.claims.attribution_truth.measure import random_network
from rankfall.claims.attribution_truth.methods import alti, decomposed, flows
from rankfall.claims.attribution_truth.networks import LAST, TOKENS, build_all
from rankfall.identity.attribution.mixing import mixing
from rankfall.identity.cells import cell_views
from rankfall.measure.context import Context
from rankfall.overview.claims.measure import decide
from rankfall.report.claim import VERDICTS, claims

TINY: dict[str, dict[str, Any]] = {
    "sinks_slow_mixing": {"depth": 2, "tokens": 6, "width": 8, "heads": 2},
    "last_tokens_converge": {"most": 8, "before": 2, "depth": 2, "width": 8, "heads": 2},
    "causal_products": {"depth": 6, "tokens": 5, "width": 8},
    "alibi_peak": {"tokens": 12, "width": 8, "layers": (1, 2)},
    "attribution_truth": {"depth": 2, "tokens": 4, "width": 8, "heads": 2, "samples": 3},
    "rope_and_distance": {"pairs": 50, "width": 8, "tokens": 5, "most": 4},
    "clusters": {"tokens": 5, "time": 1.0, "many": 12, "reading": 1.0, "late": 2.0},
    "massive_token": {"depth": 1, "tokens": 5, "width": 8, "heads": 2},
    "length_and_scale": {"numbers": (10, 20), "tokens": (4, 8), "width": 4},
    "early_tokens_at_birth": {"items": 2, "width": 4, "layers": (2, 4, 6, 10)},
    "shaped_attention": {"depth": 2, "tokens": 4, "width": 8},
    "sinks_need_normalisation": {"steps": 2, "symbols": 4, "length": 5, "width": 8, "samples": 3},
    "order_without_positions": {"steps": 2, "symbols": 3, "length": 5, "width": 8, "heads": 2, "samples": 3},
    "invertible_states": {"depth": 2, "tokens": 8, "vocabulary": 5, "width": 8, "heads": 2},
}


@pytest.mark.parametrize("name", TINY)
def test_a_seed_has_the_same_rows_alone(name: str) -> None:
    measure = components.load("measure", name)
    alone = measure(Context(), seeds=1, **TINY[name])
    beside = measure(Context(), seeds=3, **TINY[name])
    assert [row for row in beside if row["seed"] == 0] == alone
    assert {row["seed"] for row in beside} == {0, 1, 2}


@pytest.mark.parametrize("name", TINY)
def test_its_rules_decide(name: str) -> None:
    table = pd.DataFrame(components.load("measure", name)(Context(), seeds=2, **TINY[name]))
    assert not table.duplicated(["claim", "quantity", "line", "x", "seed"]).any()
    mine = [claim for claim in claims() if claim.table == name]
    assert {claim.name for claim in mine} == set(table.claim)
    for claim in mine:
        found = decide(claim, lambda read: table if read == "evidence" else None)
        assert found is not None and found.verdict in VERDICTS and found.said.endswith(".")
        assert not claim.shown or claim.shown in set(table[table.claim == claim.name].quantity)


def test_the_networks_made_by_hand_depend_on_what_they_say() -> None:
    for known in build_all(3):
        out = known.network.run(known.inputs[None])[0, :, LAST]  # (2^T, D)
        numbers = torch.arange(len(out))
        moved = [float((out - out[numbers ^ (1 << token)]).square().sum(-1).mean()) for token in range(TOKENS)]
        assert {token for token, size in enumerate(moved) if size > 1e-20} == known.needed, known.name


def test_decomposed_vectors_sum_to_the_state() -> None:
    network, x, _ = random_network(1, 3, 4, 8, 2, 3)
    views = list(cell_views(network, x[None]))
    for parts, state in zip(decomposed(network, x, views), list(network.layers(x[None]))[1:], strict=True):
        torch.testing.assert_close(parts.sum(-2), state[0], rtol=1e-10, atol=1e-12)


def test_a_flow_is_the_narrowest_place_of_a_path_and_adds_over_paths() -> None:
    first = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.0, 0.75]]], dtype=torch.float64)
    last = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.125, 0.5, 0.375]]], dtype=torch.float64)
    # To token 0: through 0 at most 0.125, through 1 the smaller of 0.5 and 0.5, through 2 the smaller of 0.375 and 0.25.
    torch.testing.assert_close(
        flows([first, last])[0], torch.tensor([0.875, 0.5, 0.375], dtype=torch.float64), rtol=0, atol=1e-6
    )


def test_alti_and_value_zeroing_of_one_summand() -> None:
    known = next(one for one in build_all(0) if one.name == "a copy of a copy")
    view = next(cell_views(known.network, known.inputs[None]))
    expected = torch.zeros(TOKENS, dtype=torch.float64)
    expected[LAST - 1] = 1  # each layer copies one token, and nothing else
    for matrix in (alti(view), mixing(view).norms):
        torch.testing.assert_close(matrix[:, LAST], expected.expand(len(known.inputs), -1), rtol=0, atol=1e-9)
