"""Check measures and theory on what stands around the attention: residuals, blocks and norms, also where layers read earlier ones."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import by_member, cells, data_of, needed, network_of
from one_stack import chosen

from rankfall import components
from rankfall.design import Component
from rankfall.measure.context import Context
from rankfall.nets.network import Network, Shape
from rankfall.position.probe.measure import PROBED, refusal
from rankfall.position.rows import distinct, last_rows, random_networks
from rankfall.position.theory import decide
from rankfall.rank.law.measure import law
from rankfall.rank.residuals.measure import residuals

INPUTS = torch.randint(7, (2, 3, 5), generator=torch.Generator().manual_seed(1))
PARTS = [(kind, name) for kind in ("residual", "block", "norm") for name in components.names(kind)]
PARTS.append(("attention", "value_residual"))
PRE = {"norm": "layer", "norm_placement": "pre"}


def network(**architecture: Any) -> tuple[Network, list[Any]]:
    own = {"depth": 2, "position": "none", "norm": "none", "residual": "add", "mlp": "gelu"} | architecture
    return network_of(noise=0.5, seed=3, **own), cells(architecture=own, grid={"seed": [0, 1]})


@pytest.mark.parametrize(
    ("kind", "name", "around"),
    [
        *((kind, name, {}) for kind, name in PARTS),
        *((kind, name, PRE) for kind, name in PARTS if kind == "block" and name != "highway"),
    ],
)
def test_residuals_by_layer_are_those_of_the_states(kind: str, name: str, around: dict[str, Any]) -> None:
    made, both = network(**needed(kind, name) | around | {kind: name})
    context = Context(made, data_of(INPUTS), both)
    direct = [(x - x.mean(2, keepdim=True)).norm(dim=(2, 3)) / x.norm(dim=(2, 3)) for x in made.states(INPUTS)]
    rows = by_member(residuals, context, norms=["frobenius"], best=False)
    rows = chosen(rows, place="state", quantity="residual", centre="mean")
    assert len(rows) == 2 * len(direct)
    for row in rows:
        assert row["value"] == pytest.approx(float(direct[row["layer"]][row["member"]].mean()), rel=1e-9)
    # The derivatives of a block take seconds.
    for row in by_member(law, context, samples=1) if not around else ():
        assert row["method"] == "centred" or row["method_reason"]
        assert row["log10_residual"] is not None and not math.isnan(row["log10_residual"])


@pytest.mark.parametrize(
    ("kind", "name", "normaliser"),
    [*((*part, "l2") for part in PARTS), *((*part, "softmax") for part in PARTS if part[0] in ("block", "attention"))],
)
def test_theory_of_equal_tokens_knows_what_stands_around(kind: str, name: str, normaliser: str) -> None:
    parts: dict[str, Any] = {"position": "rope", "sentinels": "none", "mask": "causal", "normaliser": normaliser}
    named = {field: Component(part) for field, part in (parts | needed(kind, name) | {kind: name}).items()}
    if name == "attentive":
        named["norm"] = Component("none")
    design = replace(PROBED, depth=2, **named)
    made = random_networks(design, Shape("tokens", "values", 9, 1, 1), 4)
    expected = 1 if normaliser == "softmax" else 9
    assert refusal(design) is None
    if name == "column":  # rows that are equal stay so; but it divides by their spread, which is rounding
        return
    assert decide(design, 9).rows == int(distinct(last_rows(made, 9)).rows.max()) == expected
