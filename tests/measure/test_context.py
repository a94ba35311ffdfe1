"""Check what every measure receives: random numbers that do not depend on the stack, and states that outlive a job that is stopped."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import config

from rankfall import cli
from rankfall.measure.context import Context
from rankfall.report.tables import read_frame
from rankfall.run.jobs import engine
from rankfall.run.jobs.engine import Interrupted, StackCheckpoint
from rankfall.run.plan import make_plan
from rankfall.run.store import Store
from rankfall.run.store.inventory import Live, find_removable

FREE = '''"""A long measure of nothing: one item after another."""
NEEDS = "nothing"
TABLE = "path_counts"


def free(context, *, items: int = 5):
    def rows_of(length):
        with open("calls", "a") as calls:
            calls.write(f"{length} ")
        draw = float(context.stream("free", length).random())
        return [{"model": "m", "depth": 1, "heads": 1, "length": length, "log10_paths": draw, "proportion": draw / 3}]

    return context.rows(range(items), rows_of)
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Train four cells for no epochs, two a stack, beside a measure of a user and one that trains probes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lab_free", raising=False)
    (tmp_path / "lab_free.py").write_text(FREE)
    probes = {"measure": "token_identity", "sentences": 20, "epochs": 2, "hidden": 4, "places": 2}
    raw = config(
        grid={"seed": "0..3"},
        measures={"probes": probes, "free": {"measure": "lab_free:free"}},
        compute={"threads": 1, "stack": 2},
    )
    (tmp_path / "config.json").write_text(json.dumps(raw))
    assert run("train", *place()) == 0
    return tmp_path


def run(verb: str, *options: str) -> int:
    return cli.main([verb, "--config", "config.json", *options])


def place() -> list[str]:
    ((task, shard),) = make_plan("config.json").shards
    return ["--task", task, "--shard", shard]


def measure(name: str, results: str = "results") -> int:
    where = [] if name == "free" else place()
    return run("measure", "--results", results, "--measure", name, *where, "--out", f"{results}.{name}.parquet")


def killed_at(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[str, int], bool]) -> None:
    """SIGTERM comes just after a step of a part."""
    whole = StackCheckpoint.after_step

    def after_step(self: StackCheckpoint, name: str, step: int, state: Any) -> None:
        if wanted(name, step):
            os.kill(os.getpid(), signal.SIGTERM)
        whole(self, name, step, state)

    monkeypatch.setattr(StackCheckpoint, "after_step", after_step)


@pytest.mark.long
def test_probes_that_are_stopped_go_on_bit_identically(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM comes while the probes of the first cell are trained."""
    all_steps: list[tuple[str, int]] = []
    with monkeypatch.context() as patch:
        killed_at(patch, lambda name, step: bool(all_steps.append((name, step))))
        assert measure("probes") == 0
    undisturbed = read_frame(lab / "results.probes.parquet", "token_identity")
    assert not list((lab / "results/store/checkpoints").glob("*"))
    assert run("train", "--results", "other", *place()) == 0
    with monkeypatch.context() as patch:
        killed_at(patch, lambda name, step: (name, step) == all_steps[2])
        assert measure("probes", "other") == engine.INTERRUPTED
    (kept,) = (lab / "other/store/checkpoints").glob("*.safetensors")
    plan, store = make_plan("config.json"), Store(lab / "other/store")
    rows = {plan.measure_key("probes", cell) for cell in plan.cells}
    live = Live(cells={cell.key for cell in plan.cells}, measures={"token_identity": rows})
    assert kept not in {item.path for item in find_removable(store, live)}
    assert kept in {item.path for item in find_removable(store, Live(cells=live.cells))}
    steps: list[tuple[str, int]] = []
    with monkeypatch.context() as patch:
        killed_at(patch, lambda name, step: bool(steps.append((name, step))))
        assert measure("probes", "other") == 0
    assert steps == all_steps[3:]
    assert undisturbed.equals(read_frame(lab / "other.probes.parquet", "token_identity"))
    assert not list((lab / "other/store/checkpoints").glob("*"))


@pytest.mark.long
def test_a_measure_of_nothing_goes_on_after_its_last_item(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure("free") == 0
    assert (lab / "calls").read_text().split() == list("01234")
    with monkeypatch.context() as patch:
        killed_at(patch, lambda name, step: step == 3)
        assert measure("free", "other") == engine.INTERRUPTED
    assert not (lab / "other.free.parquet").exists()
    assert measure("free", "other") == 0
    assert (lab / "calls").read_text().split() == list("01234" * 2)
    whole, parted = (read_frame(lab / f"{name}.free.parquet", "path_counts") for name in ("results", "other"))
    assert whole.equals(parted)
    assert not list((lab / "other/store/checkpoints").glob("*"))


def test_random_numbers_do_not_depend_on_the_stack() -> None:
    cells: Any = [SimpleNamespace(seed=seed) for seed in (3, 5, 8)]
    stack, alone = Context(cells=cells), Context(cells=cells[1:2])
    drawn = stack.stream("m", 2, member=1).random(4)
    assert np.array_equal(drawn, alone.stream("m", 2, member=0).random(4))
    others = [stack.stream("m", 2, member=0), stack.stream("m", 3, member=1), stack.stream("m", 2)]
    assert len({float(rng.random()) for rng in [*others, stack.stream("m", 2, member=1)]}) == 4
    assert np.array_equal(stack.stream("m").random(4), alone.stream("m").random(4))


def test_parts_that_are_done_stay_in_the_checkpoint(tmp_path: Path) -> None:
    """Of parts one after another, the first must not be lost when the second is kept; nor when the job is stopped a second time."""
    store = Store(tmp_path)

    def checkpoint(stopped: str | None = None) -> StackCheckpoint:
        return StackCheckpoint(store, ["key"], 3600.0, lambda: stopped)

    with pytest.raises(Interrupted, match="TERM at step 2"):
        checkpoint("TERM").after_step("one", 2, lambda: {"x": torch.arange(3.0)})
    again = checkpoint("TERM")
    assert again.load("two") is None
    with pytest.raises(Interrupted):
        again.after_step("two", 1, lambda: {"x": torch.zeros(2)})
    last = checkpoint()
    assert {name: (last.load(name) or {})["x"].tolist() for name in ("one", "two")} == {"one": [0, 1, 2], "two": [0, 0]}
    assert StackCheckpoint(store, ["other"], 1.0, lambda: None).load("one") is None
