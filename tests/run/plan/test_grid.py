"""Guards what the grid means: which cells an entry makes, with what in them."""

from pathlib import Path
from typing import Any

import pytest
from plans import changed, planned

from rankfall.run.plan import make_plan


def cells(entry: dict[str, Any]) -> set[tuple[str, int, int]]:
    base = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}
    found = planned("grid", [base | entry]).cells
    return {(cell.architecture.name, cell.architecture.depth, cell.seed) for cell in found}


def test_cross_product() -> None:
    found = cells({"architecture": ["san", "full"], "depth": [1, 2], "seed": [0, 5]})
    assert found == {(name, depth, seed) for name in ("san", "full") for depth in (1, 2) for seed in (0, 5)}


def test_axis_that_is_not_given_has_the_architecture_s_own_value() -> None:
    assert cells({"architecture": ["san", "full"]}) == {("san", 6, 0), ("full", 3, 0)}


def test_ranges_hold_both_ends_and_mix_with_lists() -> None:
    assert {seed for _, _, seed in cells({"seed": ["0..2", 7]})} == {0, 1, 2, 7}
    assert {depth for _, depth, _ in cells({"depth": "3..5"})} == {3, 4, 5}


def test_exclude_takes_out_what_matches_all_of_its_fields() -> None:
    found = cells({"architecture": ["san", "full"], "depth": [1, 2], "exclude": [{"architecture": "san", "depth": 2}]})
    assert found == {("san", 1, 0), ("full", 1, 0), ("full", 2, 0)}


def test_exclude_sees_fields_that_are_no_axes() -> None:
    assert cells({"architecture": ["san", "full"], "exclude": [{"mlp": "gelu"}]}) == {("san", 6, 0)}


def test_include_adds_to_what_is_left() -> None:
    entry = {
        "depth": [1, 2],
        "exclude": [{"depth": 2}],
        "include": [{"architecture": "full", "depth": 9, "seed": [3, 4]}],
    }
    assert cells(entry) == {("san", 1, 0), ("full", 9, 3), ("full", 9, 4)}


def test_axes_of_training_task_and_components() -> None:
    entry = {"training.lr": ["1e-4", 0.5], "task.length": [5, 6], "normaliser": ["softmax", {"name": "l2"}]}
    found = planned("grid", [{"task": "sorting", "architecture": "san", "training": "short", "seed": 0, **entry}]).cells
    seen = {(c.training.lr, c.task.task.options["length"], c.architecture.normaliser.name) for c in found}
    assert seen == {(lr, length, name) for lr in (1e-4, 0.5) for length in (5, 6) for name in ("softmax", "l2")}


def test_base_is_inherited_and_overridden() -> None:
    config = changed("architectures/child", {"base": "full", "depth": 5})
    config = changed("architectures/grandchild", {"base": "child", "mlp": "relu"}, config)
    entry = {"task": "sorting", "architecture": ["grandchild"], "training": "short", "seed": 0}
    (cell,) = make_plan(changed("grid", [entry], config)).cells
    assert (cell.architecture.depth, cell.architecture.mlp.name) == (5, "relu")


def test_nothing_is_left_open_for_the_network() -> None:
    for cell in planned("grid/0/heads", [2, 4]).cells:
        a = cell.architecture
        assert (a.embedding.name, a.head.name) == ("token", "classifier")
        assert a.head_width == 48 // a.heads
        assert (a.mlp_width, a.mlp_residual and a.mlp_residual.name) == (
            (192, "add") if a.name == "full" else (None, None)
        )
        assert cell.task.task.options == {"train": 60, "test": 200, "length": 5, "symbols": 10}


def test_task_of_vectors_gets_other_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tasklab.py").write_text(
        'INPUTS = "vectors"\nTARGETS = "values"\ndef spin(rng, *, train: int = 10): ...\n'
    )
    config = changed("tasks", {"spin": {"task": "tasklab:spin", "train": 20}}, changed("measures", {}))
    (cell, *_) = make_plan(changed("grid/0/task", "spin", config)).cells
    assert (cell.architecture.embedding.name, cell.architecture.head.name) == ("linear", "regression")
    assert cell.task.name == "spin"


def test_measure_for_other_targets_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from plans import refusal

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tasklab2.py").write_text('INPUTS = "vectors"\nTARGETS = "values"\ndef spin(rng): ...\n')
    config = changed("tasks/spin", {"task": "tasklab2:spin"})
    both = changed("grid/0/task", ["spin", "sorting"], config)
    message = refusal(changed("measures/paths/cells", {"task": ["spin", "sorting"]}, both))
    what = "measure 'paths' is for classes, but task 'spin' has values"
    assert message.startswith(f"measures.paths.cells: spin / full / short: {what}")
    assert make_plan(both).left_out == {"paths": {what: 12}}
    make_plan(changed("measures/paths/cells", {"task": "sorting"}, changed("grid/0/task", ["spin", "sorting"], config)))


def test_a_grid_with_everything_that_has_seeds_of_its_own() -> None:
    """Excluded, added and repeated seeds, seeds that several entries share out, and a measure of some seeds."""
    plan = make_plan(
        {
            "name": "seeds",
            "tasks": {"sorting": {"length": 5, "symbols": 6}},
            "architectures": {"soft": {"mlp": "none", "heads": 2, "width": 8}},
            "trainings": {"short": {"epochs": 2, "batch": 30}},
            "grid": [
                {
                    "task": "sorting",
                    "architecture": "soft",
                    "training": "short",
                    "depth": [1, 2],
                    "seed": [40, "0..4"],
                    "exclude": [{"depth": 2, "seed": 2}],
                    "include": [{"depth": 3, "seed": 33}],
                },
                {"task": "sorting", "architecture": "soft", "training": "short", "depth": 1, "seed": [7, 5]},
            ],
            "measures": {"paths": {"cells": {"depth": [1, 2], "seed": [3, 40]}}},
            "figures": {},
        }
    )
    seeds = {depth: [c.seed for c in plan.cells if c.architecture.depth == depth] for depth in (1, 2, 3)}
    assert seeds == {1: [0, 1, 2, 3, 4, 5, 7, 40], 2: [0, 1, 3, 4, 40], 3: [33]}
    measured = {(c.architecture.depth, c.seed) for c in plan.cells if c.key in plan.selected["paths"]}
    assert measured == {(1, 3), (1, 40), (2, 3), (2, 40)}
