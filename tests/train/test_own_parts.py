"""An objective and a task without end, each one file of somebody's own: planned, tried, trained."""

import json
import sys
from pathlib import Path

import pytest
from helpers import config

from rankfall import cli
from rankfall.report.tables import read_frame
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

OBJECTIVE = '''"""Focal loss: what is known already counts less."""
import torch
from rankfall.nets.primitives import no_dropout
from rankfall.train.objectives._base import Graded, outputs

ACCEPTS = "classes"


def focal(module, batch, drop=no_dropout, *, power: float = 2.0):
    logs = outputs(module, batch.inputs, drop).log_softmax(-1).gather(-1, batch.targets.clamp_min(0).unsqueeze(-1))
    asked = (batch.targets != -1).flatten(1)
    each = -(1 - logs.exp()) ** power * logs
    known = (logs.squeeze(-1) > -0.5).flatten(1) & asked
    return Graded((each.flatten(1) * asked).sum(1) / asked.sum(1).clamp_min(1), asked.sum(1), {"known": known.sum(1)})
'''

TASK = '''"""Parity of what came before, never twice the same."""
import torch
from rankfall.tasks._dataset import Dataset, Split

INPUTS = "tokens"
TARGETS = "classes"


class Endless:
    def __init__(self, *, train: int = 25, length: int = 16, longer: int = 19):
        self.train, self.length, self.longer = train, length, longer

    def __call__(self, rng):
        lengths = {"train": self.length, "test": self.length, "longer": self.longer}
        return Dataset({name: Split(*self.drawn(rng, self.train, size)) for name, size in lengths.items()}, 2, 2, 0.5)

    def batch(self, rng, samples):
        return self.drawn(rng, samples, self.length)

    def drawn(self, rng, samples, length):
        bits = torch.from_numpy(rng.integers(2, size=(samples, length)))
        return bits, bits.cumsum(1) % 2
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("own_objective", OBJECTIVE), ("own_task", TASK)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    raw = config(
        training={"epochs": 2, "batch": 10, "lr": 1e-2, "objective": {"name": "own_objective:focal", "power": 1.0}},
        architecture={"position": "rope"},
        grid={"seed": "0..2", "task": "endless"},
    )
    raw["tasks"] = {"endless": {"task": "own_task:Endless"}}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    return tmp_path


def job(verb: str, *args: str) -> int:
    ((task, shard),) = make_plan("config.json").shards
    place = ["--task", task, *(["--shard", shard] if verb != "data" else [])]
    return cli.main([verb, "--config", "config.json", "--results", "results", *place, *args])


@pytest.mark.long
def test_each_is_one_file(lab: Path) -> None:
    assert job("data", "--out", "datasets.parquet") == 0
    assert job("train", "--out", "cells.parquet", "--training-out", "training.parquet") == 0
    cells, course = read_frame(lab / "cells.parquet", "cells"), read_frame(lab / "training.parquet", "training")
    assert set(cells.status) == {"done"}, cells.reason.iloc[0]
    assert set(cells.objective) == {"own_objective:focal(power=1.0)"}
    assert cells.steps.tolist() == [6, 6, 6]
    assert cells.test_accuracy.isna().all()  # this objective has none
    kept = course.groupby(["split", "metric"]).epoch.apply(lambda found: sorted(set(found))).to_dict()
    assert kept == {
        **{("train", metric): [1, 2] for metric in ("loss", "known")},
        **{("test", metric): [1, 2] for metric in ("loss", "known")},
        **{("longer", metric): [2] for metric in ("loss", "known")},  # at the end alone
    }
    sets = read_frame(lab / "datasets.parquet", "datasets")
    assert dict(zip(sets.split, sets.length)) == {"train": 16, "test": 16, "longer": 19}


def test_data_that_do_not_depend_on_the_seed_are_made_once(tmp_path: Path) -> None:
    """One file for all seeds, one object for all members; and the network and the order of the data are each seed's own all the same."""
    from rankfall.run.jobs.cells import datasets_of

    raw = config(grid={"seed": "0..3", "task": "circle"})
    raw["tasks"] = {"circle": {"points": 20}}
    cells, store = make_plan(raw).cells, Store(tmp_path)
    assert len({cell.data_key for cell in cells}) == 1
    assert len({cell.key for cell in cells}) == 4
    first, *others = datasets_of(cells, store)
    assert all(one is first for one in others)
    assert len(list((tmp_path / "data").iterdir())) == 1
    raw["tasks"]["circle"]["points"] = 22
    assert make_plan(raw).cells[0].data_key != cells[0].data_key
