"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rankfall.claims.answers import lies_between
from rankfall.claims.early_tokens_at_birth.claim import DEFECTS, LINK, PAPER
from rankfall.report.claim import (
    Claim,
    Decision,
    Read,
    Threshold,
    band_of,
    change_of,
    compare,
    evidence_rows,
    judge,
    within,
)

if TYPE_CHECKING:
    from pandas import DataFrame

GAP = "how much more often the first item's label is said than the middle one's, by layers"
ENDS = "how much more often the first item's label is said than the last one's, by layers"
RIGHT = "share of right labels, by layers"
LEARNED = Threshold(0.5, "above", RIGHT, "networks that count")  # one of eight labels is right by chance
GROWN = Threshold(0.0, "above", "change of the gap from the shallowest network to the deepest")
FALLS = Threshold(
    0.0, "below", "change of the gap between neighbouring depths", "without skips at none, with skips at one"
)
DOWN, UP = within(0.0, 0.05, "change of the gap between neighbouring depths", "with skips, a level step")
SETTING = (
    "Causal attention of one head without positions, width 24, and an MLP on the query, trained for 600 steps of 64 texts of 8 "
    "items and a query; items and their "
    "labels are one token each and new in every text. The source has items and labels apart, 2048 kinds of items, width 64 and "
    "100,000 steps, one network each."
)


def grows(read: Read) -> Decision:
    rows = read("evidence")
    layers = learned_depths(rows, "no skips")
    said = say_depths(rows, "no skips")
    if len(layers) < 2:
        return judge(said, None, "deeper networks without skips that learn the task")
    whole = change_of(rows, GAP, "no skips", layers[0], layers[-1])
    answer = compare(whole, GROWN)
    turn = "below" in [compare(change_of(rows, GAP, "no skips", a, b), FALLS) for a, b in pairwise(layers)]
    unclear, falls = answer == "undecided", answer == "below"
    return judge(said, whole, "more seeds", undecided=unclear, contradicted=falls, in_part=turn, holds=True)


def turns(read: Read) -> Decision:
    rows = read("evidence")
    layers = learned_depths(rows, "skips")
    said = say_depths(rows, "skips")
    if len(layers) < 3:  # the change of a single step may be up or down
        return judge(said, None, "deeper networks with skips that learn the task")
    changes = [change_of(rows, GAP, "skips", a, b) for a, b in pairwise(layers)]
    steps = [compare(one, FALLS) for one in changes]
    level = any(lies_between(one, DOWN, UP) for one in changes)
    number = change_of(rows, GAP, "skips", layers[0], layers[-1])
    wants = "more seeds: steps of the gap that are told from zero"
    unclear = "undecided" in steps
    return judge(said, number, wants, holds="below" in steps, in_part=level, undecided=unclear, contradicted=True)


def learned_depths(rows: DataFrame, line: str) -> list[float]:
    return [
        x
        for x in sorted(set(evidence_rows(rows, RIGHT, line).x))
        if compare(band_of(rows, RIGHT, line, x), LEARNED) == "above"
    ]


def say_depths(rows: DataFrame, line: str) -> str:
    parts = [
        f"{x:.0f}: {band_of(rows, GAP, line, x)}, to the last {band_of(rows, ENDS, line, x).mean:.2f}, right "
        f"{band_of(rows, RIGHT, line, x).mean:.0%}"
        for x in sorted(set(evidence_rows(rows, GAP, line).x))
    ]
    return f"Gap of first to middle by layers, {line}: {'; '.join(parts)}."


CLAIMS = (
    Claim(
        "trained_bias_grows_with_depth",
        "Trained causal networks without skips favour the first item over the middle one the more, the deeper they are.",
        PAPER,
        LINK,
        ("second-hand", "code"),
        SETTING,
        "It holds if the gap in the deepest network that has learned (more than half of the labels right, 1 to 3 layers) is larger "
        "than in that of one layer and falls at no step, with whole intervals over seeds; in part if it falls at a step; "
        "contradicted if the "
        "deepest has a smaller one.",
        grows,
        defects=DEFECTS,
        shown=GAP,
        thresholds=(LEARNED, GROWN, FALLS),
        place=355,
        changed="A gap that falls at a step is in part now: the rule had compared the deepest network with the shallowest alone, and "
        "three layers have less than two.",
    ),
    Claim(
        "trained_bias_turns_with_skips",
        "In trained causal networks with skips the bias to the first item does not grow steadily with depth.",
        PAPER,
        LINK,
        ("second-hand", "code"),
        SETTING,
        "It holds if between networks with skips of 2, 4 and 8 layers that have learned the gap of first to middle falls at some "
        "step, with the whole "
        "interval over seeds; in part if at none, but a step is level (within .05); contradicted if every step rises.",
        turns,
        shown=GAP,
        thresholds=(LEARNED, FALLS, DOWN, UP),
        place=365,
        changed="A second claim of this statement, on untrained networks, is gone: their bias grows steadily with skips too (its rows are "
        "with `depth_amplifies_early_bias`), which says nothing of trained ones and left it undecided. A level step counts in part.",
    ),
)
