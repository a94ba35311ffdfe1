"""Guards what every experiment of a claim has to keep: a seed's numbers are its own, rows are of the table, and its claims read them."""

import inspect
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rankfall.claims
from rankfall import components
from rankfall.measure.context import Context
from rankfall.overview.claims.measure import decide
from rankfall.report.claim import claims
from rankfall.report.schema import schema

SMALL: dict[str, Any] = {"depth": 3, "tokens": 6, "width": 8, "heads": 2, "seeds": 2}
EXPERIMENTS = [path.parent.name for path in sorted(Path(rankfall.claims.__file__).parent.glob("*/measure.py"))]


def run(name: str, **options: Any) -> pd.DataFrame:
    """At a small size, where the experiment has these options."""
    measure = components.load("measure", name)
    known = inspect.signature(measure).parameters
    return pd.DataFrame(measure(Context(), **{key: value for key, value in options.items() if key in known}))


@pytest.mark.parametrize("name", ["norms_prevent_collapse"])
def test_a_seed_is_measured_for_itself(name: str) -> None:
    alone, together = run(name, **SMALL | {"seeds": 1}), run(name, **SMALL | {"seeds": 3})
    pd.testing.assert_frame_equal(alone, together[together.seed == 0].reset_index(drop=True), check_exact=True)


@pytest.mark.parametrize("name", ["norms_prevent_collapse"])
def test_rows_are_of_the_table_and_decide(name: str) -> None:
    rows = run(name, **SMALL)
    table = schema("evidence")
    assert list(rows) == [column.name for column in table.columns]
    assert not rows.duplicated(list(table.key)).any() and (rows.value.notna() != rows.value_reason.notna()).all()
    own = [claim for claim in claims() if claim.table == name]
    assert own and {claim.name for claim in own} == set(rows.claim)
    for claim in own:
        assert decide(claim, {"evidence": rows}.get) is not None
        shown = set(rows[rows.claim == claim.name].quantity)
        assert all(", by " in quantity for quantity in shown)
        assert {value.quantity for value in claim.published} | ({claim.shown} if claim.shown else set()) <= shown
        assert {number.quantity for number in claim.thresholds if ", by " in number.quantity} <= shown


def test_every_experiment_fills_the_evidence() -> None:
    facts = [components.describe("measure", name).facts for name in EXPERIMENTS]  # type: ignore[union-attr]
    assert {(one["TABLE"], one["NEEDS"]) for one in facts} == {("evidence", "nothing")}
