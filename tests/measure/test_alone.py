"""A number does not depend on what is beside it: every measure of cells gives a cell the same bits in any stack, order and company."""

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall import components
from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.measuring import MeasuringWork, measure_cells
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.row_keeper import text
from rankfall.run.jobs.training import TrainingWork
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.trial.candidate import Refused

pytestmark = pytest.mark.long

SORTING: dict[str, Any] = {"train": 40, "test": 12, "length": 5, "symbols": 6}
OPTIONS: dict[str, Any] = {
    "paths": {"repeats": 1, "counts": [2]},
    "token_identity": {"sentences": 12, "epochs": 1, "hidden": 4},
    "attention_identity": {"samples": 2},
    "attribution": {"samples": 1},
    "circle": {"steps": 9},
    "law": {"samples": 2},
    "residuals": {"samples": 3},
    "cell_influence": {"samples": 2},
    "extrapolation": {"times": [0.5, 1, 2]},
    "probe_trained": {"draws": 1},
}
# What a measure is for, where that is not any network that sorts.
TASKS: dict[str, Any] = {
    "circle": {"circle": {"points": 12}},
    "extrapolation": {"masked_text": {"train": 20, "test": 12, "length": 8, "longer": None, "vocabulary": 100}},
    "probe_trained": {"probe": {"length": 5, "lengths": [7], "train": 20}},
}
PARTS: dict[str, Any] = {
    "circle": {"position": "none"},
    "extrapolation": {"position": "rope"},
    "probe_trained": {"norm_placement": "pre", "position": "none"},
    "offsets": {"position": "toeplitz"},
    "cell_influence": {"mask": "causal"},
    "decomposition": {"mlp": "none", "norm": "none"},
}
TRAINED: dict[str, Any] = {
    "extrapolation": {"objective": "masked_tokens"},
    "probe_trained": {"objective": {"name": "prefixes", "shortest": 3}, "batch": 1},
}
# Of these the search for a centre, and the choice of a method, once were the stack's.
DEEPER: list[tuple[str, dict[str, Any]]] = [
    ("residuals", {"mlp": "none", "residual": "none", "position": "none", "depth": 5}),
    ("law", {"mlp": "none", "norm": "none", "position": "none", "depth": 3, "normaliser": "foreign:Differential"}),
]


def needs_cells(name: str) -> bool:
    found = components.describe("measure", name)
    return found is not None and found.facts.get("NEEDS", "cells") == "cells"


MEASURES = [name for name in components.names("measure") if needs_cells(name)]


def plan_of(name: str, seeds: list[int], parts: dict[str, Any], rates: list[float], measure: str = "") -> Plan:
    """Cells of these seeds, and of learning rates of which the second makes weights thousands of times as large."""
    task = TASKS.get(name, {"sorting": SORTING})
    raw = config(
        architecture={"mlp": "gelu", "residual": "add"} | PARTS.get(name, {}) | parts,
        training={"epochs": 1, "batch": 10} | TRAINED.get(name, {}),
        measures={"it": {"measure": measure or name} | OPTIONS.get(name, {})},
    )
    raw["tasks"] = task
    raw["grid"] = [
        {"task": next(iter(task)), "architecture": "net", "training": "short", "training.lr": rates, "seed": seeds}
    ]
    return make_plan(raw)


def rows_of(plan: Plan, store: Store, stack: int) -> dict[str, str]:
    """Cell key -> its rows, measured anew from what the store has of the cells."""
    settings = Settings(torch.device("cpu"), stack=stack)
    TrainingWork(store, settings, Progress(), plan.origin).train_cells(plan.cells)
    shutil.rmtree(store.root / "measures", ignore_errors=True)
    job = MeasuringWork(plan, plan.measures["it"], store, settings, lambda: None)
    found: dict[str, str] = {}
    for key, rows in itertools.groupby(measure_cells(list(plan.cells), job), lambda row: row["key"]):
        listed = list(rows)
        assert {row["status"] for row in listed} == {"done"}, listed[0]
        found[key] = text(listed)
    return found


@pytest.mark.parametrize(
    ("name", "parts"), [*((name, {}) for name in MEASURES), *DEEPER], ids=lambda one: one if one else ""
)
def test_a_cell_has_the_same_bits_in_any_stack(
    name: str, parts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "rank"))
    store = Store(tmp_path)
    whole = rows_of(plan_of(name, [0, 1], parts, [1e-3, 1.0]), store, 8)
    assert len(whole) == 4 and len(set(whole.values())) > 1
    for seeds, stack in (([1, 0], 2), ([1], 1)):
        found = rows_of(plan_of(name, seeds, parts, [1e-3]), store, stack)
        assert len(found) == len(seeds) and found == {key: whole[key] for key in found}


def test_a_measure_that_gives_other_rows_at_another_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = '{"kind": "whole", "accuracy": float(getattr(torch, "rand")(()))}'
    code = f'import torch\n\nTABLE = "paths"\n\n\ndef chance(context):\n    return [{row}]\n'
    (tmp_path / "own_measures.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    plan, store = plan_of("own", [0, 1], {}, [1e-3, 1.0], "own_measures:chance"), Store(tmp_path / "store")
    for _ in range(2):  # a refusal is not remembered
        with pytest.raises(Refused, match="gives other rows when a cell is measured again: accuracy of row 1"):
            rows_of(plan, store, 8)
        assert not store.find_rows("own_measures:chance", [plan.measure_key("it", cell) for cell in plan.cells])
