"""An edit while a job runs: it computes by the code that its keys were made from, or keeps nothing."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config
from torch import Tensor

from rankfall import cli
from rankfall.run.guards.unchanged import Edited, check_unchanged
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.train.progress import Progress

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
SHARP = "def sharp(logits):\n    return (2 * logits).softmax(-1)\n"
EDIT = SHARP.replace("2", "3")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return laboratory(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    """What a job keeps whose files nobody edits; the same in every folder."""
    with pytest.MonkeyPatch.context() as patch:
        folder = laboratory(tmp_path_factory.mktemp("undisturbed"), patch)
        plan = make_plan(folder / "config.json")
        assert train(plan) == 0
        return weights(folder, plan)


def laboratory(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A folder with two normalisers in modules of their own, for two architectures: each is imported with its own stack."""
    patch.chdir(folder)
    patch.syspath_prepend(folder)
    for name in ("edited_one", "edited_two"):
        (folder / f"{name}.py").write_text(SHARP)
        sys.modules.pop(name, None)
    raw = config(training={"epochs": 2}, compute={"threads": 1, "checkpoint_seconds": 1e-9})
    raw["architectures"] = {
        name: {"depth": 1, "width": 8, "normaliser": f"edited_{name}:sharp"} for name in ("one", "two")
    }
    raw["grid"][0] |= {"architecture": ["one", "two"], "seed": [0, 1]}
    (folder / "config.json").write_text(json.dumps(raw))
    return folder


def edit(lab: Path, text: str) -> None:
    for name in ("edited_one", "edited_two"):
        (lab / f"{name}.py").write_text(text)


def train(plan: Plan) -> int:
    ((task, shard),) = plan.shards
    return cli.main(
        [
            "train",
            "--config",
            "config.json",
            "--results",
            "results",
            "--task",
            task,
            "--shard",
            shard,
            "--out",
            "t.parquet",
        ]
    )


def when(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> None:
    """Do something when a job tells of its progress."""
    told = getattr(Progress, method)

    def telling(self: Progress, *rest: Any, **named: Any) -> None:
        told(self, *rest, **named)
        act()

    monkeypatch.setattr(Progress, method, telling)


def weights(lab: Path, plan: Plan) -> dict[str, Tensor]:
    """All that the store holds of the cells, by key and name."""
    store, found = Store(lab / "results" / "store"), {}
    for group in {cell.group for cell in plan.cells}:
        for stack in store.load_cells([cell.key for cell in plan.cells if cell.group == group], group):
            found |= {f"{stack.keys} {name}": value for name, value in stack.tensors.items()}
    return found


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("text", [EDIT, "def sharp(logits:\n", None])
def test_an_edit_while_a_job_runs_changes_nothing_of_it(
    lab: Path, undisturbed: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch, text: str | None, back: bool
) -> None:
    """Edited, half edited or deleted before the second stack imports it, and perhaps restored before that is saved: what the plan
    has hashed is what runs."""
    plan = make_plan(lab / "config.json")
    progress = []

    def disturb() -> None:
        progress.append("stack")
        if back and len(progress) == 2:
            edit(lab, SHARP)
        elif text is None:
            (lab / "edited_one.py").unlink(missing_ok=True)
            (lab / "edited_two.py").unlink(missing_ok=True)
        else:
            edit(lab, text)

    when(monkeypatch, "cells_done" if not back else "begin_stack", disturb)
    assert train(plan) == 0
    assert len(progress) == 2
    found = weights(lab, plan)
    assert undisturbed.keys() == found.keys()
    assert all(torch.equal(undisturbed[name], found[name]) for name in found if "none" not in name)
    assert len(found) > 10


@pytest.mark.parametrize("text", [EDIT, "def sharp(logits:\n", None])
def test_an_edit_after_the_plan_and_before_any_import_changes_nothing(
    lab: Path, undisturbed: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    """The trials import all components at the start of a job, so the edits of the test above come when modules are there already."""
    plan = make_plan(lab / "config.json")

    def disturb() -> None:
        if text is not None:
            edit(lab, text)
            return
        for name in ("edited_one", "edited_two"):
            (lab / f"{name}.py").unlink(missing_ok=True)

    when(monkeypatch, "begin", disturb)
    assert train(plan) == 0
    found = weights(lab, plan)
    assert len(found) > 10
    assert undisturbed.keys() == found.keys()
    assert all(torch.equal(undisturbed[name], found[name]) for name in found if "none" not in name)


def test_code_that_was_imported_before_an_edit_ends_the_job(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_plan(lab / "config.json")
    assert train(plan) == 0
    edit(lab, EDIT)  # the modules stay imported, as the first text
    assert train(make_plan(lab / "config.json")) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert re.search(r"edited_(one|two)\.py was edited after this process had imported it: run again$", error)
    assert len(list(Store(lab / "results" / "store").records())) == len(plan.cells)


def test_data_are_drawn_by_the_code_of_the_plan(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import os\nfrom rankfall.tasks.sorting import INPUTS as _, sorting\nINPUTS = 'tokens'\nTARGETS = 'classes'\n"
    )
    text += "def drawn(rng):\n    return sorting(rng, train=64, test=32, length=5, symbols=6)\n"
    (lab / "edited_data.py").write_text(text)
    raw = config()
    raw["tasks"] = {"sorting": {"task": "edited_data:drawn"}}
    (lab / "config.json").write_text(json.dumps(raw))
    plan = make_plan(lab / "config.json")
    when(monkeypatch, "begin", lambda: (lab / "edited_data.py").write_text(text.replace("64", "65")))
    assert train(plan) == 0
    (cell,) = plan.cells
    assert len(Store(lab / "results" / "store").dataset(cell.data_key, pytest.fail).train.inputs) == 64


@pytest.mark.parametrize("path", ["config.yaml", "workflow/presets/paper.yaml"])
def test_all_kinds_of_files_are_what_the_plan_says(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = make_plan(path)
    codes = [cell.code for cell in plan.cells] + [measure.code for measure in plan.measures.values()]
    kinds = {name.rpartition(".")[2] for code in codes for name in code}
    assert kinds >= {"py", "csv", "topics"}
    check_unchanged(*codes)


def test_every_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of the user's, another Python's topics, the package's data, a file that is gone."""
    raw = config(architecture={"depth": 1})
    (tmp_path / "text.txt").write_text("to be or not to be " * 40)
    raw["tasks"]["sorting"] = {"task": "memorization", "text": str(tmp_path / "text.txt")}
    plan = make_plan(raw)
    (cell,) = plan.cells
    check_unchanged(cell.code, cell.data_code)
    (tmp_path / "text.txt").write_text("that is the question")
    with pytest.raises(Edited, match=r"text\.txt changed while the job ran"):
        check_unchanged(cell.code)
    for name in ("pydoc_data.topics", "rankfall/rank/paths/published.csv", "rankfall/gone.py", "gone.txt"):
        with pytest.raises(Edited, match=name):
            check_unchanged({name: "0" * 12})
