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

from rankfall.design import Component
from rankfall.nets.network import Shape
from rankfall.run.guards import Edited, guard_job
from rankfall.run.jobs import checks
from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.shard import train_shard
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.train.progress import Progress
from rankfall.trial.candidate import Refused

MIXING = "def sharp(logits, *, power: float = 2.0):\n    w = (power * logits).softmax(-1)\n    return w + (w.mean(0) - w) / 9\n"
MENDED = "def sharp(logits, *, power: float = 2.0):\n    return (power * logits).softmax(-1)\n"
SHAPE = Shape("tokens", "classes", length=5, size_in=6, size_out=6)
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
    train_shard(plan.cells, store, Settings(torch.device("cpu")), progress, plan.origin)
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
    assert checks.find_refused_cells(plan.cells, store, print) == {}
    assert tried == [] and time.thread_time() - began < 0.3  # some 0.02 s: keys of 15 components
    run(plan_of(seed="0..3", power=3.0), store)
    assert tried == ["normaliser mylab_tried:sharp"]
    tried.clear()
    lab(MENDED.replace("power *", "2 * power *"))
    run(plan_of(seed="0..3", power=3.0), store)
    assert tried == ["normaliser mylab_tried:sharp"]


@pytest.mark.long
def test_a_lost_memory_is_tried_again_and_a_refusal_is(
    tmp_path: Path, lab: Callable[[str], None], tried: list[str]
) -> None:
    lab(MENDED)
    store = Store(tmp_path / "store")
    run(plan_of(), store)
    files = sorted((tmp_path / "store" / "trials").iterdir())
    assert len(files) == PARTS + 1
    files[0].unlink()
    tried.clear()
    run(plan_of(seed=1), store)
    assert len(tried) == 1
    lab(MIXING)
    for _ in range(2):
        tried.clear()
        run(plan_of(), store)
        assert tried == ["normaliser mylab_tried:sharp"]


def test_what_was_edited_during_its_trial_is_neither_failed_nor_remembered(
    tmp_path: Path, lab: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab(MENDED)
    plan, store = plan_of(), Store(tmp_path / "store")

    def edited(kind: str, *given: Any) -> Any:
        (tmp_path / "mylab_tried.py").write_text(MIXING)
        raise Refused("half an edit")

    monkeypatch.setattr(checks, "try_component", edited)
    codes = [cell.code for cell in plan.cells]
    with guard_job(codes), pytest.raises(Edited, match=r"mylab_tried\.py changed while the job ran"):
        run(plan, store)
    assert store.find_cells([cell.key for cell in plan.cells]) == {}
    assert not (tmp_path / "store" / "trials").exists()


@pytest.mark.long
def test_one_size_does_not_condemn_another(tmp_path: Path, lab: Callable[[str], None]) -> None:
    """A shape that does not fit names the file of the component, not the attention around it."""
    lab("import torch\n\n\ndef sharp(logits):\n    return (logits * torch.ones(2, 1, 1).to(logits)).softmax(-1)\n")
    raw = config(training={"epochs": 1})
    raw["grid"] = [{"task": "sorting", "architecture": "own", "training": "short", "seed": 0, "heads": [2, 4]}]
    raw["architectures"] = {"own": {"depth": 1, "width": 8, "normaliser": "mylab_tried:sharp"}}
    plan, store = make_plan(raw), Store(tmp_path / "store")
    run(plan, store)
    found = store.find_cells([cell.key for cell in plan.cells])
    two, four = sorted(plan.cells, key=lambda cell: cell.architecture.heads)
    assert found[two.key].status == "done"
    reason = found[four.key].record["reason"]
    assert "mylab_tried.py, sharp) raises RuntimeError" in reason and "(line 5), given scores (3, 3, 4, 5, 5)" in reason


@pytest.mark.long
def test_a_slow_component_is_said_to_be_slow(tmp_path: Path, lab: Callable[[str], None]) -> None:
    lab("import time\n\n\ndef sharp(logits):\n    time.sleep(0.12)\n    return logits.softmax(-1)\n")
    plan, store = plan_of(0), Store(tmp_path / "store")
    (said,) = (line for line in run(plan, store) if line.startswith("slow: "))
    assert "'mylab_tried:sharp'" in said and "mylab_tried.py, sharp)" in said
    assert ends(plan, store)["own"] == {"done"}
    assert not any(line.startswith("slow: ") for line in run(plan_of(0, 1), store))


def test_a_measure_with_networks_of_its_own_refuses_the_component(tmp_path: Path, lab: Callable[[str], None]) -> None:
    lab(MIXING)
    store = Store(tmp_path / "store")
    orders = Component(
        name="orders", options={"normalisers": ["softmax", "mylab_tried:sharp"], "masks": ["none"], "draws": 4}
    )
    with pytest.raises(Refused, match=r"mylab_tried\.py, sharp\) mixes the members of a stack"):
        checks.refuse_parts(orders, store, print)
    lab(MENDED)
    checks.refuse_parts(orders, store, print)


@pytest.mark.long
def test_the_trial_is_no_part_of_any_key() -> None:
    """An edit of the trial tries components again and computes nothing again."""
    plan = make_plan("config.yaml")
    codes = [cell.code for cell in plan.cells] + [measure.code for measure in plan.measures.values()]
    files = {file for code in codes for file in code}
    assert "rankfall/nets/network.py" in files
    assert not [file for file in files if "trial" in file]


def test_a_task_is_drawn_once_more_than_its_data_are_needed(tmp_path: Path, lab: Callable[[str], None]) -> None:
    """Once for each seed, and once to see that the same generator gives the same; with other data the task is refused."""
    counted = "from rankfall.tasks.sorting import sorting\nINPUTS = 'tokens'\nTARGETS = 'classes'\ncalls = []\n"
    counted += "def drawn(rng, *, train: int = 20):\n    calls.append(1)\n"
    lab(counted + "    return sorting(rng, train=train, test=5, length=4, symbols=5)\n")
    raw = config(grid={"seed": [3, 4]})
    raw["tasks"]["sorting"] = {"task": "mylab_tried:drawn"}
    store = Store(tmp_path / "store")
    for draws in (3, 3):
        run(make_plan(raw), store)
        assert len(sys.modules["mylab_tried"].calls) == draws
    lab(counted + "    return sorting(rng, train=train, test=5 + len(calls) // 2, length=4, symbols=5)\n")
    lines = run(make_plan(raw), store)
    assert any("draws other test inputs when it is given the same generator again" in line for line in lines)


@pytest.mark.long
def test_a_neighbour_that_diverges_changes_no_other_cell(tmp_path: Path, lab: Callable[[str], None]) -> None:
    """A maximum over members passes where all are alike. It is refused before anything is trained; and of components that pass, cells next
    to one that diverges have the weights, bit for bit, that they have beside one that does not."""
    lab("def sharp(logits):\n    w = (logits - logits.amax()).exp()\n    return w / w.sum(-1, keepdim=True)\n")
    lines = run(plan_of(1, "0..2"), Store(tmp_path / "refused"))
    assert any("mixes the members of a stack: where member 0 has numbers 10,000 times" in line for line in lines)
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
