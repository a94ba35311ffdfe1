"""Guards what components read and have: a field that nothing reads is no part of a cell, and what one lacks another may not use."""

from pathlib import Path
from typing import Any

import pytest
from plans import component, refusal

from rankfall.run.plan import Plan, make_plan


def config(architecture: dict[str, Any], axes: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "tasks": {"sorting": {"train": 60, "length": 5}},
        "architectures": {"net": {"depth": 2, "width": 8, "position": "none"} | architecture},
        "trainings": {"short": {"epochs": 1}},
        "grid": [{"task": "sorting", "architecture": "net", "training": "short", "seed": [0, 1]} | (axes or {})],
    } | more


def planned(architecture: dict[str, Any], axes: dict[str, Any] | None = None, **more: Any) -> Plan:
    return make_plan(config(architecture, axes, **more))


def test_cells_that_differ_in_what_nothing_reads_are_one_cell() -> None:
    """Also in key, spec and group, whatever entry or configuration wrote them."""
    both = planned({"attention": "linear"}, {"normaliser": ["softmax", "l2"]})
    assert len(both.cells) == 2  # seeds
    (alone,) = {cell.architecture for cell in planned({"attention": "linear", "normaliser": "relu2"}).cells}
    assert [cell.key for cell in both.cells] == [cell.key for cell in planned({"attention": "linear"}).cells]
    assert alone.normaliser is None and alone.heads == 2
    unit = planned({"attention": "gau"}, {"heads": [1, 2, 3], "head_width": [None, 7]})
    assert len(unit.cells) == 2
    assert unit.cells[0].architecture.heads is unit.cells[0].architecture.head_width is None


@pytest.mark.parametrize(
    ("measure", "attention", "lacks"),
    [
        ("paths", "linear", "weights and heads"),
        ("paths", "gau", "heads"),
        ("decomposition", "linear", "weights and heads and values"),
        ("decomposition", "gau", "heads and values"),
    ],
)
def test_a_measure_is_refused_what_an_attention_has_not(measure: str, attention: str, lacks: str) -> None:
    given = config({"attention": attention, "norm": "none"}, measures={measure: {}})
    said = refusal(given)
    what = f"measure {measure!r} uses {lacks}, which attention {attention!r} does not have"
    assert said == f"measures.{measure}: no cell of the grid can be measured: {what}"
    given["measures"][measure] = {"cells": {"seed": 0}}
    assert refusal(given).endswith(f": {what}; name the right cells in `cells`")


@pytest.mark.parametrize("position", ["rope", "toeplitz", "symmetric"])
def test_a_position_needs_something_to_act_on(position: str) -> None:
    said = refusal(config({"attention": "linear", "position": position}))
    place = "queries" if position == "rope" else "scores"
    assert f"position {position!r} acts on {place}, or" in said and "attention 'linear' does not let it reach" in said
    planned({"attention": "gau", "position": position})


MEASURE = """
TABLE = "residuals"
LENGTHS = ("lengths",)
def own(context, *, lengths: list[int] = [], most: int = 3): ...
"""


def test_longer_than_learned_positions_go_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    component(tmp_path, "lengthlab", MEASURE)
    for position, lengths, works in (
        ("learned", [3, 5], True),
        ("learned", [5, 6], False),
        ("rope", [5, 600], True),
        ("toeplitz", [20], True),
    ):
        measures = {"own": {"measure": "lengthlab:own", "lengths": lengths}}
        given = config({"position": position}, measures=measures)
        if works:
            make_plan(given)
        else:
            assert refusal(given).startswith(
                "measures.own: no cell of the grid can be measured: length 6 is asked for, but position 'learned' admits "
                "no more than the length that it was trained at, 5"
            )
