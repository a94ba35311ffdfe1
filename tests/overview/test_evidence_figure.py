"""Guards that what a rule compares with is seen: a named line in figure and chart where the axis is of its quantity, and words in the
caption for all."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from rankfall.overview import evidence as shown
from rankfall.report.claim import Claim
from rankfall.report.decision import HOLDS, Decision, Threshold, within

SPREAD, SHARE = "spread, by layer", "share, by layer"
CLAIM = Claim(
    name="deep",
    says="Deeper is worse.",
    paper="Someone: A paper, 2024",
    link="https://example.org/paper",
    seen=("abstract",),
    setting="Nothing.",
    threshold="If it is above one.",
    decide=lambda read: Decision(HOLDS, "It is."),
    shown=SPREAD,
    thresholds=(
        Threshold(2.5, "above", SPREAD, "the last layer"),
        Threshold(0.0, "below", SPREAD),
        Threshold(0.5, "at", SHARE),
        Threshold(3.0, "below", "power of depth"),
    ),
)


def rows(*values: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"claim": "deep", "quantity": quantity, "line": "a", "x": float(x), "seed": 0, "value": value}
        for quantity in (SPREAD, SHARE)
        for x, value in enumerate(values)
    )


@pytest.fixture
def picture(monkeypatch: pytest.MonkeyPatch) -> Any:
    verdicts = pd.DataFrame([{"claim": "deep", "verdict": "holds", "said": "It is.", "extends": ""}])

    def draw(*values: float, claim: Claim = CLAIM) -> Any:
        monkeypatch.setattr(shown, "declared_claims", lambda: (claim,))
        return shown.figure({"evidence": rows(*values), "claims": verdicts}.__getitem__)

    return draw


def drawn(found: Any) -> dict[str, float]:
    """Names of lines of rules, and where they are."""
    (panel,) = found.figure.axes
    heights = [line.get_ydata()[0] for line in panel.get_lines() if line.get_label() == "_threshold"]
    names = [text.get_text() for text in panel.texts]
    for height in heights:
        low, high = panel.get_ylim()
        assert low <= height <= high
    return dict(zip(names, heights, strict=True))


def test_a_line_for_each_number_of_what_the_axis_shows(picture: Any) -> None:
    assert drawn(picture(1.0, 2.0)) == {"rule: above 2.5": 2.5, "rule: below 0": 0.0}
    assert drawn(picture(1.0, 2.0, claim=replace(CLAIM, shown=SHARE))) == {"rule: at 0.5": 0.5}
    assert drawn(picture(1.0, 2.0, claim=replace(CLAIM, thresholds=()))) == {}


def test_the_chart_of_the_page_has_a_column_for_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    both = replace(CLAIM, name="both", thresholds=(*within(1.0, 0.5, SHARE), Threshold(0.7, "above", SHARE)))
    monkeypatch.setattr(shown, "declared_claims", lambda: (CLAIM, both))
    (own,) = shown.CHARTS
    table = pd.concat([rows(1.0), rows(1.0).assign(claim="both"), rows(1.0).assign(claim="nobody's")])
    nan = math.nan
    wanted = {
        "rule: above": [2.5, nan, nan, 0.5, nan, nan],
        "rule: above (2)": [nan, nan, nan, 0.7, nan, nan],
        "rule: below": [0.0, nan, nan, 1.5, nan, nan],
        "rule: at": [nan, 0.5, nan, nan, nan, nan],
    }
    columns = table.assign(**own.derive)
    for level in own.beside:
        assert columns[level.column].tolist() == pytest.approx(wanted.get(level.name, [nan] * 6), nan_ok=True), (
            level.name
        )
    assert set(wanted) < {level.name for level in own.beside}
