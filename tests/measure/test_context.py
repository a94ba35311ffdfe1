"""Guards what every measure is given: random numbers that do not depend on the stack, and states that outlive a job that is stopped."""

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

PROBES = '''"""Maps from the last states to the input, in two kinds; all of a kind are one stack."""
import torch
from rankfall.nets.primitives import Linear, Sizes
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data
from rankfall.train.loop import Course
from rankfall.train.members import Hyperparameters, Members
from rankfall.train.objectives.classes import classes
from rankfall.train.optimizers.adam import Adam
from rankfall.train.loop import fit_or_resume

TABLE = "paths"


def probes(context, *, each: int = 500):
    with torch.no_grad():
        states = context.network.states(context.data.test.inputs)[-1]  # (K, B, T, D)
    rows = []
    for kind, rate in (("whole", 0.1), ("chance", 0.01)):
        count, width, symbols = len(context.cells) * each, states.shape[-1], context.data.size_in
        made = Linear(Sizes(count, 1, 1, width, 1, 1, 1, width, symbols), width, symbols, "probe")
        for name, value in made.named_parameters():
            drawn = [context.stream("probes", kind, name, i % each, member=i // each).normal(size=value.shape[1:]) for i in range(count)]
            value.data = torch.stack([torch.from_numpy(one) for one in drawn]).to(value)
        split = Split(states.repeat_interleave(each, 0), context.data.test.inputs.repeat_interleave(each, 0))
        seeds = [cell.seed for cell in context.cells for _ in range(each)]
        members = Members(made, seeds, Adam(), [Hyperparameters(lr=rate)] * count)
        history = fit_or_resume(context.checkpoint, kind, members, Data({"train": split}), classes, Course(epochs=2, batch=8))
        loss = history.mean("train", "loss", 1).view(len(context.cells), each)
        rows += [
            {"kind": kind, "accuracy": float(v), "repeat": i} for k in range(len(loss)) for i, v in enumerate(loss[k])
        ]
    return rows
'''
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
    """Four cells at initialisation, two a stack, and measures of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("lab_probes", PROBES), ("lab_free", FREE)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    configure(tmp_path)
    assert cli.main(["train", "--config", "config.json", *place()]) == 0
    return tmp_path


def configure(folder: Path, **compute: Any) -> None:
    own = {name: {"measure": f"lab_{name}:{name}"} for name in ("probes", "free")}
    raw = config(
        training={"epochs": 0},
        grid={"seed": "0..3"},
        measures=own,
        compute={"threads": 1, "stack": 2} | compute,
    )
    (folder / "config.json").write_text(json.dumps(raw))


def place() -> list[str]:
    ((task, shard),) = make_plan("config.json").shards
    return ["--task", task, "--shard", shard]


def measure(name: str, results: str = "results") -> int:
    where = [] if name == "free" else place()
    out = f"{results}.{name}.parquet"
    return cli.main(
        ["measure", "--config", "config.json", "--results", results, "--measure", name, *where, "--out", out]
    )


def killed_at(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[str, int], bool]) -> None:
    """SIGTERM comes just after a step of a part."""
    whole = StackCheckpoint.after_step

    def after_step(self: StackCheckpoint, name: str, step: int, state: Any) -> None:
        if wanted(name, step):
            os.kill(os.getpid(), signal.SIGTERM)
        whole(self, name, step, state)

    monkeypatch.setattr(StackCheckpoint, "after_step", after_step)


@pytest.mark.long
@pytest.mark.parametrize(("part", "step"), [("whole", 7), ("chance", 3)])
def test_probes_that_are_stopped_go_on_bit_identically(
    lab: Path, monkeypatch: pytest.MonkeyPatch, part: str, step: int
) -> None:
    """500 probes of a cell in a stack, then as many of another kind: SIGTERM comes while the first or the second are trained."""
    assert measure("probes") == 0
    undisturbed = read_frame(lab / "results.probes.parquet", "paths")
    assert len(undisturbed) == 4 * 2 * 500 and undisturbed.accuracy.nunique() > 3000
    assert not list((lab / "results/store/checkpoints").glob("*"))
    assert cli.main(["train", "--config", "config.json", "--results", "other", *place()]) == 0
    with monkeypatch.context() as patch:
        killed_at(patch, lambda name, now: (name, now) == (part, step))
        assert measure("probes", "other") == engine.INTERRUPTED
    (kept,) = (lab / "other/store/checkpoints").glob("*.safetensors")
    plan, store = make_plan("config.json"), Store(lab / "other/store")
    rows = {plan.measure_key("probes", cell) for cell in plan.cells}
    live = Live(cells={cell.key for cell in plan.cells}, measures={"lab_probes:probes": rows})
    assert kept not in {item.path for item in find_removable(store, live)}
    assert kept in {item.path for item in find_removable(store, Live(cells=live.cells))}
    steps: list[tuple[str, int]] = []
    with monkeypatch.context() as patch:
        killed_at(patch, lambda name, now: bool(steps.append((name, now))))
        assert measure("probes", "other") == 0
    first = 8 * (part == "chance") + step  # steps that need not be taken again; each kind has 8
    assert len(steps) == 4 * 16 - first  # of four cells, one after another
    assert undisturbed.equals(read_frame(lab / "other.probes.parquet", "paths"))
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
    one, other = (read_frame(lab / f"{name}.free.parquet", "path_counts") for name in ("results", "other"))
    assert one.equals(other)
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
