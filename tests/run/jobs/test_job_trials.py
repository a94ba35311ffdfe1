"""Guards what a job does with trials: a component is tried once for what it is, cells whose component is refused fail with the
line that refuses it, and the others go on.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall.run.jobs import checks
from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store

MIXING = "def sharp(logits, *, power: float = 2.0):\n    w = (power * logits).softmax(-1)\n    return w + (w.mean(0) - w) / 9\n"
MENDED = "def sharp(logits, *, power: float = 2.0):\n    return (power * logits).softmax(-1)\n"
PARTS = 16  # of a trained cell: 12 of the architecture, task, objective, optimiser, schedule


class Quiet(Progress):
    """Remembers what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def run(plan: Plan, store: Store) -> list[str]:
    progress = Quiet()
    train_cells(plan.cells, store, Settings(torch.device("cpu")), progress, plan.origin)
    return progress.lines


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes `mylab_tried.py`, as an edit between two jobs, each of which is a process of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str) -> None:
        (tmp_path / "mylab_tried.py").write_text(text)
        sys.modules.pop("mylab_tried", None)

    return write


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The components that are tried, in order."""
    names: list[str] = []
    real = checks.try_component

    def counting(kind: str, component: Any, *given: Any) -> Any:
        names.append(f"{kind} {component.name}")
        return real(kind, component, *given)

    monkeypatch.setattr(checks, "try_component", counting)
    return names


def plan_of(epochs: int = 1, seed: Any = 0, **own: Any) -> Plan:
    raw = config(training={"epochs": epochs})
    raw["architectures"] = {
        "fine": {"depth": 1, "width": 8},
        "own": {"depth": 1, "width": 8, "normaliser": {"name": "mylab_tried:sharp"} | own},
    }
    raw["grid"][0] |= {"architecture": ["fine", "own"], "seed": seed}
    return make_plan(raw)


def ends(plan: Plan, store: Store) -> dict[str, set[str]]:
    found = store.find_cells([cell.key for cell in plan.cells])
    names = {cell.architecture.name for cell in plan.cells}
    return {
        name: {found[cell.key].status for cell in plan.cells if cell.architecture.name == name}
        for name in sorted(names)
    }


@pytest.mark.long
def test_a_component_that_mixes_members_fails_its_cells_and_no_others(
    tmp_path: Path, lab: Callable[[str], None]
) -> None:
    """Under one key it would give one number alone and another in a stack, without a word. Mended, its cells are made."""
    lab(MIXING)
    plan, store = plan_of(seed="0..2"), Store(tmp_path / "store")
    lines = run(plan, store)
    assert ends(plan, store) == {"fine": {"done"}, "own": {"failed"}}
    (said,) = (line for line in lines if line.startswith("refused"))
    assert "'mylab_tried:sharp'" in said and "mylab_tried.py, sharp) mixes the members of a stack" in said
    found = store.find_cells([cell.key for cell in plan.cells])
    for cell in plan.cells:
        if cell.architecture.name == "own":
            assert found[cell.key].record["reason"] == said.removeprefix("refused, so 3 cells failed: ")
            assert found[cell.key].record["reason"].count("\n  fix: ") == 1
    assert not any("halving" in line for line in lines)
    lab(MENDED)
    run(plan_of(seed="0..2"), store)
    assert ends(plan_of(seed="0..2"), store) == {"fine": {"done"}, "own": {"done"}}


@pytest.mark.long
def test_a_component_is_tried_once_for_what_it_is(tmp_path: Path, lab: Callable[[str], None], tried: list[str]) -> None:
    lab(MENDED)
    store = Store(tmp_path / "store")
    run(plan_of(), store)
    assert len(tried) == PARTS + 1 == len(set(tried))  # all are shared but for the normaliser
    tried.clear()
    run(plan_of(seed="0..3"), store)
    assert tried == []
    plan = plan_of(seed="0..99")
    began = time.thread_time()
    assert checks.find_refused_cells(plan.cells, store, print, {}) == {}
    assert tried == [] and time.thread_time() - began < 0.3  # some 0.02 s: keys of 15 components
    run(plan_of(seed="0..3", power=3.0), store)
    assert tried == ["normaliser mylab_tried:sharp"]
    tried.clear()
    lab(MENDED.replace("power *", "2 * power *"))
    run(plan_of(seed="0..3", power=3.0), store)
    assert tried == ["normaliser mylab_tried:sharp"]


@pytest.mark.long
def test_a_neighbour_that_diverges_changes_no_other_cell(tmp_path: Path, lab: Callable[[str], None]) -> None:
    """A maximum over members passes where all are alike. It is refused before anything is trained; and of components that pass, cells next
    to one that diverges have the weights, bit for bit, that they have beside one that does not."""
    lab("def sharp(logits):\n    w = (logits - logits.amax()).exp()\n    return w / w.sum(-1, keepdim=True)\n")
    lines = run(plan_of(1, "0..2"), Store(tmp_path / "refused"))
    assert any("mixes the members of a stack" in line for line in lines)
    lab(
        "def sharp(logits):\n    w = (logits - logits.amax(-1, keepdim=True)).exp()\n    return w / w.sum(-1, keepdim=True)\n"
    )
    weights = {}
    for lr in (1e-3, 1e6):
        raw = config(training={"epochs": 3})
        raw["architectures"] = {"own": {"depth": 1, "width": 8, "normaliser": "mylab_tried:sharp", "norm": "none"}}
        raw["grid"] = [
            {"task": "sorting", "architecture": "own", "training": "short", "seed": [0, 1], "training.lr": 1e-2}
        ]
        raw["grid"].append(raw["grid"][0] | {"seed": 2, "training.lr": lr})
        plan, store = make_plan(raw), Store(tmp_path / f"{lr}")
        run(plan, store)
        good = [cell for cell in plan.cells if cell.seed < 2]
        (other,) = (cell for cell in plan.cells if cell.seed == 2)
        ended = store.find_cells([other.key])[other.key]
        assert ended.status == ("done" if lr < 1 else "diverged")
        stacks = store.load_cells([cell.key for cell in good], good[0].group)
        weights[lr] = {name: value for stack in stacks for name, value in stack.tensors.items()}
    assert all(torch.equal(value, weights[1e6][name]) for name, value in weights[1e-3].items())
