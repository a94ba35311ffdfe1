"""What depth does to accuracy, in words: of settings that differ in depth alone, of architectures that both depths have."""

from typing import Any

import pandas as pd
from score_rows import row

from rankfall.report.conform import conform
from rankfall.report.settings import settings_in
from rankfall.use.cells.depths import say_depth
from rankfall.use.cells.shown import is_trained


def told(*rows: dict[str, Any]) -> tuple[str, str]:
    scores = conform("scorecard", list(rows)).to_pandas()
    return say_depth(scores, settings_in(scores))


def said(*rows: dict[str, Any]) -> str:
    return told(*rows)[1]


def at(name: str, depth: int, value: float, more: str = "", deviation: float | None = 0.01) -> dict[str, Any]:
    one = row(name, depth=depth, accuracy=value, accuracy__deviation=deviation)
    return one | {"setting": one["setting"] + more}


def test_depth_is_compared_where_nothing_else_differs() -> None:
    rows = [at("a", 2, 0.9), at("a", 6, 0.5), at("b", 2, 0.9), at("b", 6, 0.905), at("c", 6, 0.1)]
    rows[3] |= {"accuracy_each": "0=0.915 1=0.905 2=0.895"}
    text = said(*rows)
    assert text == (
        "At sorting, long: from depth 2 to 6 test accuracy falls from 90% ± 1% to 50% ± 1% in a; it ties with itself in b "
        "(3 seeds each)."
    )
    assert said(at("a", 2, 0.9, ", width 48"), at("a", 6, 0.5, ", width 64")) == ""


def test_the_shallowest_and_the_deepest_of_the_family_that_most_architectures_have_are_compared() -> None:
    two = [
        at(name, depth, value, ", width 64")
        for name, value in (("a", 0.6), ("b", 0.7))
        for depth, value in ((1, value), (3, 0.3))
    ]
    one = [at("a", depth, 0.1 * depth) for depth in (2, 4, 6)]
    assert (
        said(*one)
        == "At sorting, long: from depth 2 to 6 test accuracy rises from 20% ± 1% to 60% ± 1% in a (3 seeds each)."
    )
    family, text = told(*two, *one)
    assert family == "sorting, long, width 64"
    assert text == (
        "At sorting, long, width 64, where most architectures have several depths: from depth 1 to 3 test accuracy falls from 60% ± 1% to "
        "30% ± 1% in a and 70% ± 1% to 30% ± 1% in b (3 seeds each)."
    )
    assert told(at("a", 2, 0.5)) == ("", "")


def test_depth_is_compared_seed_by_seed() -> None:
    """Seeds that all gained were "no more than the deviation over seeds", since single seeds differ by more."""
    flat = at("a", 2, 0.5, deviation=0.2)
    assert "rises from 50% ± 20% to 52% ± 20% in a" in said(flat, at("a", 6, 0.52, deviation=0.2))
    tie = at("a", 6, 0.5) | {"accuracy_each": "0=0.6 1=0.4 2=0.5"}
    assert "test accuracy ties with itself in a" in said(flat, tie)
    near = [at("b", depth, value, deviation=1e-5) for depth, value in ((2, 0.5002), (6, 0.5004))]
    assert "rises from 50% to 50% in b" in said(*near)  # in every seed, though both are written alike
    alone = [at("a", 2, 0.5) | {"accuracy_each": "0=0.5"}, at("a", 6, 0.6) | {"accuracy_each": "0=0.6"}]
    assert "is not decided, with fewer than two shared seeds, from 50% ± 1% to 60% ± 1% in a" in said(*alone)


def test_a_network_is_trained_from_the_first_epoch() -> None:
    assert is_trained(pd.DataFrame({"epochs": [0, 1, 2]})).tolist() == [False, True, True]
