"""Check how claims are decided and refused: intervals by an independent formula, and every lack of a source or column by name."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rankfall import evidence_row
from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.overview.claims import decide, measure
from rankfall.report import claim as module
from rankfall.report.claim import Claim, check_claims, claims
from rankfall.report.decision import HOLDS, Band, Decision, Threshold, band, compare, is_on

GOOD = Claim(
    name="good",
    says="Deeper is worse.",
    paper="Someone: A paper, 2024",
    link="https://example.org/paper",
    seen=("abstract",),
    setting="Nothing.",
    threshold="If it is above one.",
    decide=lambda read: Decision(HOLDS, "It is."),
)


def test_an_interval_is_students() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, 7)
    low, high = stats.t.interval(0.95, 6, loc=values.mean(), scale=values.std(ddof=1) / math.sqrt(7))
    interval = band(values)
    assert (interval.mean, interval.low, interval.high) == pytest.approx((values.mean(), low, high))
    assert interval.seeds == 7
    assert band([2.0]) == Band(2.0, 2.0, 2.0, 1) and band([2.0, math.nan, 2.0]) == Band(2.0, 2.0, 2.0, 2)
    with pytest.raises(RankfallError, match="no number"):
        band([math.nan, None])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [(1.1, 2.0, "above"), (0.0, 0.9, "below"), (0.9, 1.1, "undecided"), (1.0, 2.0, "undecided")],
)
def test_a_threshold_within_an_interval_decides_nothing(low: float, high: float, side: str) -> None:
    interval = Band((low + high) / 2, low, high, 3)
    assert compare(interval, 1.0) == side
    above = {"above": True, "below": False, "undecided": None}[side]
    assert is_on(interval, Threshold(1.0, "above", "spread")) is above
    assert is_on(interval, Threshold(1.0, "below", "spread")) is (None if above is None else not above)


def test_ours_are_right() -> None:
    check_claims()
    assert len({claim.name for claim in claims()}) == len(claims()) >= 1


@pytest.mark.parametrize(
    ("reads", "message"),
    [
        ({"residual": ()}, "reads table 'residual', which does not exist"),
        ({"residuals": ("valeu",)}, "reads column 'valeu' of table residuals, which has key"),
    ],
)
def test_what_cannot_be_read_is_refused(reads: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "claims", lambda: (replace(GOOD, table="mylab.good", reads=reads),))
    with pytest.raises(RankfallError) as error:
        check_claims()
    assert message in str(error.value) and "'good' of mylab.good" in str(error.value)


def test_a_claim_sees_its_own_evidence_alone_and_only_what_it_reads() -> None:
    seen: list[Any] = []
    claim = replace(GOOD, decide=lambda read: seen.append(read("evidence")) or Decision(HOLDS, "Yes."))  # type: ignore[func-returns-value]
    rows = pd.DataFrame({"claim": ["good", "other"], "value": [1.0, 2.0]})
    decision = decide(claim, {"evidence": rows}.get)
    assert decision is not None and decision.verdict == HOLDS and seen[0].value.tolist() == [1.0]
    assert decide(claim, {"evidence": rows[rows.claim == "other"]}.get) is None
    assert decide(claim, lambda name: None) is None
    with pytest.raises(RankfallError, match="reads table 'cells', which its `reads` does not name"):
        decide(replace(GOOD, decide=lambda read: read("cells")), {"evidence": rows, "cells": rows}.get)


def test_evidence_of_no_claim_is_refused() -> None:
    """A misspelt name left its claim out of the verdicts without a word."""
    rows = pd.DataFrame([evidence_row("norms_prevent_colapse", "kept, by layer", "softmax", 1, 0, 0.5)])
    message = "'norms_prevent_colapse', which is not a claim; did you mean 'norms_prevent_collapse'"
    with pytest.raises(RankfallError, match=message):
        measure(Context(table={"evidence": rows}.get))
