"""Who says it, and what decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, judge, of

if TYPE_CHECKING:
    from pandas import DataFrame

KEPT = "relative residual of the other tokens, by score of the first token"
REACHED = "share of a change that is in other tokens, by score of the first token"
DRAWN = "attention on the first token, by score of the first token"
LINES = ("skips, value kept", "skips, value zero", "no skips, value kept", "no skips, value zero")
LEAST = 1e-13  # what is below it is rounding, and is not given: it stands for it here
RISES = Threshold(
    0.0, "above", "change of the log of the residual of other tokens from score 0 to the highest", "every network"
)
# Less than zero, up to rounding.
FALLS = Threshold(-1e-9, "below", "change of the share of a change that is in other tokens", "every network")
OURS = "skips, value zero"  # what is nearest to trained models


def decide(read: Read) -> Decision:
    rows = read("evidence")
    high = float(rows.x.max())
    found = {slows(rows, line, high) for line in LINES}
    text = "; ".join(
        f"{line}: residual {_say(rows, line, 0.0)} to {_say(rows, line, high)}, "
        f"share in others {band_of(rows, REACHED, line, 0.0).mean:.3g} to {band_of(rows, REACHED, line, high).mean:.3g}"
        for line in LINES
    )
    said = f"When the first token's score rises from 0 to {high:g} ({band_of(rows, DRAWN, OURS, high).mean:.0%} of attention): {text}."
    return judge(
        said,
        band_of(rows, KEPT, OURS, high),
        "more seeds: changes that are told from zero",
        holds=found == {"yes"},
        in_part="yes" in found,
        contradicted=found == {"no"},
    )


def slows(rows: DataFrame, line: str, high: float) -> str:
    """yes: the residual is larger and the share of a change in other tokens smaller; no: one of them has decidedly gone the other way."""
    kept = compare(band(np.log(_values(rows, KEPT, line, high) / _values(rows, KEPT, line, 0.0))), RISES)
    reached = band(_values(rows, REACHED, line, high) - _values(rows, REACHED, line, 0.0))
    if kept == "above" and compare(reached, FALLS) == "below":
        return "yes"
    return "no" if kept == "below" or compare(reached, -FALLS) == "above" else "undecided"


def _values(rows: DataFrame, quantity: str, line: str, x: float) -> np.ndarray:
    return of(rows, quantity, line, x).value.fillna(LEAST).to_numpy()


def _say(rows: DataFrame, line: str, x: float) -> str:
    mean = float(np.mean(_values(rows, KEPT, line, x)))
    return f"{mean:.3g}" if mean > LEAST else f"less than {LEAST:g}"


CLAIMS = (
    Claim(
        "sinks_slow_mixing",
        "A first token that draws attention to itself slows the mixing of the other tokens, and so keeps them from becoming alike.",
        "Barbero, Arroyo, Gu, Perivolaropoulos, Bronstein, Velickovic and Pascanu: Why do LLMs attend to the first token?, 2025",
        "https://arxiv.org/abs/2504.02732",
        ("abstract",),
        "Causal attention with random weights N(0, 1 / width), 16 layers of 4 heads, width 64, 32 random tokens behind a first one "
        "whose score "
        "is raised by 0 to 8 in every row; the source looks at trained language models.",
        "In each of four networks (with skips or without; the first token's value kept or zero) it counts if from score 0 to 8 the "
        "relative "
        "residual of the other tokens rises and the share of a change of one token that is found in others falls, both with 95% "
        "intervals over seeds "
        "apart from zero. It holds if it counts in all four, in part if in some: a mechanism of attention alone would not need skips.",
        decide,
        shown=KEPT,
        thresholds=(RISES, FALLS),
        place=300,
        changed="A residual in float64 below 1e-13 is rounding, and counts as 1e-13.",
    ),
)
