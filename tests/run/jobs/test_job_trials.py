"""Guards what a job does with trials: a component is tried once for what it is, cells whose component is refused fail with the
line that refuses it, and the others go on.
"""

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import config
from training_jobs import find_records, find_statuses, train

from rankfall.run.jobs import checks
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store

MIXING = "def sharp(logits, *, power: float = 2.0):\n    w = (power * logits).softmax(-1)\n    return w + (w.mean(0) - w) / 9\n"
MENDED = "def sharp(logits, *, power: float = 2.0):\n    return (power * logits).softmax(-1)\n"
EXPONENTIAL = "def sharp(logits):\n    w = (logits - logits.amax(-1, keepdim=True)).exp()\n    return w / w.sum(-1, keepdim=True)\n"
PARTS = 16  # of a trained cell: 12 of the architecture, task, objective, optimiser, schedule

pytestmark = pytest.mark.long


def write(lab: Path, text: str) -> None:
    """Edit the normaliser between two jobs, each of which is a process of its own."""
    (lab / "mylab_tried.py").write_text(text)
    sys.modules.pop("mylab_tried", None)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the components that are tried, in order."""
    names: list[str] = []
    try_component = checks.try_component

    def count(kind: str, component: Any, *others: Any) -> Any:
        names.append(f"{kind} {component.name}")
        return try_component(kind, component, *others)

    monkeypatch.setattr(checks, "try_component", count)
    return names


def plan_of(seed: Any = 0, **options: Any) -> Plan:
    raw = config(training={"epochs": 1}, grid={"architecture": ["fine", "own"], "seed": seed})
    sizes = {"depth": 1, "width": 8}
    raw["architectures"] = {"fine": sizes, "own": sizes | {"normaliser": {"name": "mylab_tried:sharp"} | options}}
    return make_plan(raw)


def test_a_component_that_mixes_members_fails_its_cells_and_no_others(lab: Path) -> None:
    """Under one key it would give one number alone and another in a stack, without a word. Mended, its cells are made."""
    write(lab, MIXING)
    plan, store = plan_of("0..2"), Store(lab / "store")
    lines = train(plan, store)
    assert find_statuses(plan, store) == {"fine": {"done"}, "own": {"failed"}}
    (refusal,) = (line for line in lines if line.startswith("refused"))
    assert "'mylab_tried:sharp'" in refusal and "mylab_tried.py, sharp) mixes the members of a stack" in refusal
    records = find_records(plan, store)
    (reason,) = {records[cell.key]["reason"] for cell in plan.cells if cell.architecture.name == "own"}
    assert reason == refusal.removeprefix("refused, so 3 cells failed: ") and reason.count("\n  fix: ") == 1
    assert not any("halving" in line for line in lines)
    write(lab, MENDED)
    plan = plan_of("0..2")
    train(plan, store)
    assert find_statuses(plan, store) == {"fine": {"done"}, "own": {"done"}}


def test_a_component_is_tried_once_for_what_it_is(lab: Path, tried: list[str]) -> None:
    write(lab, MENDED)
    store = Store(lab / "store")
    train(plan_of(), store)
    assert len(tried) == PARTS + 1 == len(set(tried))  # all are shared but for the normaliser
    tried.clear()
    train(plan_of("0..3"), store)
    cells = plan_of("0..99").cells
    began = time.thread_time()
    assert checks.find_refused_cells(cells, store, print, {}) == {}
    assert tried == [] and time.thread_time() - began < 0.3  # some 0.02 s: keys of 15 components
    train(plan_of("0..3", power=3.0), store)
    write(lab, MENDED.replace("power *", "2 * power *"))
    train(plan_of("0..3", power=3.0), store)
    assert tried == ["normaliser mylab_tried:sharp"] * 2  # for another option, and for another text
