"""What depth does to accuracy, in words: of settings that differ in depth alone, of architectures that both depths have."""

from typing import Any

import pandas as pd
from score_rows import row

from rankfall.report.conform import conform
from rankfall.report.settings import settings_in
from rankfall.use.cells.shown import is_trained, say_depth


def describe(*rows: dict[str, Any]) -> tuple[str, str]:
    scores = conform("scorecard", list(rows)).to_pandas()
    return say_depth(scores, settings_in(scores))


def sentence(*rows: dict[str, Any]) -> str:
    return describe(*rows)[0]


def at(name: str, depth: int, value: float, more: str = "", deviation: float | None = 0.01) -> dict[str, Any]:
    score = row(name, depth=depth, accuracy=value, accuracy__deviation=deviation)
    return score | {"setting": score["setting"] + more}


def test_depth_is_compared_where_nothing_else_differs() -> None:
    rows = [at("a", 2, 0.9), at("a", 6, 0.5), at("b", 2, 0.9), at("b", 6, 0.905), at("c", 6, 0.1)]
    rows[3] |= {"accuracy_each": "0=0.915 1=0.905 2=0.895"}
    assert describe(*rows) == ("From depth 2 to 6 accuracy falls in a (90% to 50%).", "sorting, long")
    assert sentence(at("a", 2, 0.9, ", width 48"), at("a", 6, 0.5, ", width 64")) == ""


def test_chance_stands_beside_it() -> None:
    """It rose from 49.4% to 53.6%, below a guess."""
    rows = [row("a", depth=d, accuracy=v, accuracy__chance=0.57) for d, v in ((2, 0.494), (6, 0.536))]
    assert sentence(*rows) == "From depth 2 to 6 accuracy rises in a (49.4% to 53.6%); chance: 57%."


def test_the_shallowest_and_the_deepest_of_the_family_that_most_architectures_have_are_compared() -> None:
    two = [
        at(name, depth, value, ", width 64")
        for name, best in (("a", 0.6), ("b", 0.7))
        for depth, value in ((1, best), (3, 0.3))
    ]
    single = [at("a", depth, 0.1 * depth) for depth in (2, 4, 6)]
    assert sentence(*single) == "From depth 2 to 6 accuracy rises in a (20% to 60%)."
    falls = "From depth 1 to 3 accuracy falls in a (60% to 30%) and b (70% to 30%)."
    assert describe(*two, *single) == (falls, "sorting, long, width 64")
    assert describe(at("a", 2, 0.5)) == ("", "")


def test_depth_is_compared_seed_by_seed() -> None:
    """Seeds that all gained were "no more than the deviation over seeds", since single seeds differ by more."""
    flat = at("a", 2, 0.5, deviation=0.2)
    assert "rises in a (50% to 52%)" in sentence(flat, at("a", 6, 0.52, deviation=0.2))
    tie = at("a", 6, 0.5) | {"accuracy_each": "0=0.6 1=0.4 2=0.5"}
    alone = [at("a", 2, 0.5) | {"accuracy_each": "0=0.5"}, at("a", 6, 0.6) | {"accuracy_each": "0=0.6"}]
    assert sentence(flat, tie) == sentence(*alone) == ""


def test_a_network_is_trained_from_the_first_epoch() -> None:
    assert is_trained(pd.DataFrame({"epochs": [0, 1, 2]})).tolist() == [False, True, True]
