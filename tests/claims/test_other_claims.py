"""Experiments of claims: a seed's numbers do not depend on the others', and every rule decides at a tiny size."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rankfall import components
from rankfall.measure.context import Context
from rankfall.overview.claims.measure import decide
from rankfall.report.claim import VERDICTS, claims

TINY: dict[str, dict[str, Any]] = {
    "sinks_slow_mixing": {"depth": 2, "tokens": 6, "width": 8, "heads": 2},
    "last_tokens_converge": {"most": 8, "before": 2, "depth": 2, "width": 8, "heads": 2},
    "causal_products": {"depth": 6, "tokens": 5, "width": 8},
    "alibi_peak": {"tokens": 12, "width": 8, "layers": (1, 2)},
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
