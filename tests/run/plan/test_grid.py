"""Guards what the grid means: which cells an entry makes, with what in them."""

from pathlib import Path
from typing import Any

import pytest
from plans import changed, planned

from rankfall.run.plan import make_plan

BASE: dict[str, Any] = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}
BOTH = {"architecture": ["san", "full"]}
ENTRIES: list[tuple[dict[str, Any], set[tuple[str, int, int]]]] = [  # and architecture, depth and seed of each cell
    ({"depth": [1, 2], "seed": [0, 5]}, {("san", 1, 0), ("san", 1, 5), ("san", 2, 0), ("san", 2, 5)}),
    (BOTH, {("san", 6, 0), ("full", 3, 0)}),  # an axis that is not named has the architecture's own value
    ({"seed": ["0..2", 7]}, {("san", 6, 0), ("san", 6, 1), ("san", 6, 2), ("san", 6, 7)}),
    ({"depth": "3..5"}, {("san", 3, 0), ("san", 4, 0), ("san", 5, 0)}),
    (BOTH | {"depth": [1, 2], "exclude": [{"architecture": "san", "depth": 2}]}, {("san", 1, 0), ("full", 1, 0), ("full", 2, 0)}),
    (BOTH | {"exclude": [{"mlp": "gelu"}]}, {("san", 6, 0)}),  # by a field that is no axis
    ({"depth": [1, 2], "exclude": [{"depth": 2}], "include": [{"architecture": "full", "depth": 9, "seed": [3, 4]}]},
     {("san", 1, 0), ("full", 9, 3), ("full", 9, 4)}),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "expected"), ENTRIES)
def test_an_entry_makes_these_cells(entry: dict[str, Any], expected: set[tuple[str, int, int]]) -> None:
    cells = planned("grid", [BASE | entry]).cells
    assert {(cell.architecture.name, cell.architecture.depth, cell.seed) for cell in cells} == expected


def test_axes_of_training_task_and_components() -> None:
    entry = {"training.lr": ["1e-4", 0.5], "task.length": [5, 6], "normaliser": ["softmax", {"name": "l2"}]}
    cells = planned("grid", [BASE | entry]).cells
    seen = {(c.training.lr, c.task.task.options["length"], c.architecture.normaliser.name) for c in cells}
    assert seen == {(lr, length, name) for lr in (1e-4, 0.5) for length in (5, 6) for name in ("softmax", "l2")}


def test_base_is_inherited_and_overridden() -> None:
    config = changed("architectures/child", {"base": "full", "depth": 5})
    config = changed("architectures/grandchild", {"base": "child", "mlp": "relu"}, config)
    (cell,) = make_plan(changed("grid", [BASE | {"architecture": ["grandchild"]}], config)).cells
    assert (cell.architecture.depth, cell.architecture.mlp.name) == (5, "relu")


def test_nothing_is_left_open_for_the_network(lab: Path) -> None:
    for cell in planned("grid/0/heads", [2, 4]).cells:
        a = cell.architecture
        assert (a.embedding.name, a.head.name, a.head_width) == ("token", "classifier", 48 // a.heads)
        mlp = (a.mlp_width, a.mlp_residual and a.mlp_residual.name)
        assert mlp == ((192, "add") if a.name == "full" else (None, None))
        assert cell.task.task.options == {"train": 60, "test": 200, "length": 5, "symbols": 10}
    (lab / "tasklab.py").write_text('INPUTS = "vectors"\nTARGETS = "values"\ndef spin(rng, *, train: int = 10): ...\n')
    config = changed("tasks", {"spin": {"task": "tasklab:spin", "train": 20}}, changed("measures", {}))
    (cell, *_) = make_plan(changed("grid/0/task", "spin", config)).cells
    assert (cell.architecture.embedding.name, cell.architecture.head.name) == ("linear", "regression")


def test_several_entries_share_out_seeds_and_a_measure_selects_some() -> None:
    entries = [
        {"depth": [1, 2], "seed": [40, "0..4"], "exclude": [{"depth": 2, "seed": 2}], "include": [{"depth": 3, "seed": 33}]},
        {"depth": 1, "seed": [7, 5]},
    ]  # fmt: skip
    config = changed("measures", {"paths": {"cells": {"depth": [1, 2], "seed": [3, 40]}}})
    plan = make_plan(changed("grid", [BASE | entry for entry in entries], config))
    seeds = {depth: [c.seed for c in plan.cells if c.architecture.depth == depth] for depth in (1, 2, 3)}
    assert seeds == {1: [0, 1, 2, 3, 4, 5, 7, 40], 2: [0, 1, 3, 4, 40], 3: [33]}
    measured = {(c.architecture.depth, c.seed) for c in plan.cells if c.key in plan.selected["paths"]}
    assert measured == {(1, 3), (1, 40), (2, 3), (2, 40)}
