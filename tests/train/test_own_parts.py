"""A task without end in one file of a user, planned, tried and trained; and data that all seeds share."""

import json
from pathlib import Path

import pytest
from helpers import config

from rankfall import cli
from rankfall.report.tables import read_frame
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

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
    (tmp_path / "own_task.py").write_text(TASK)
    training = {"epochs": 2, "batch": 10, "lr": 1e-2}
    raw = config(training=training, architecture={"position": "rope"}, grid={"seed": "0..2", "task": "endless"})
    raw["tasks"] = {"endless": {"task": "own_task:Endless"}}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    return tmp_path


def job(verb: str, *args: str) -> int:
    ((task, shard),) = make_plan("config.json").shards
    place = ["--task", task, *(["--shard", shard] if verb != "data" else [])]
    return cli.main([verb, "--config", "config.json", "--results", "results", *place, *args])


@pytest.mark.long
def test_a_task_without_end_is_trained_and_a_further_split_evaluated_at_the_end(lab: Path) -> None:
    assert job("data", "--out", "datasets.parquet") == 0
    assert job("train", "--out", "cells.parquet", "--training-out", "training.parquet") == 0
    cells, course = read_frame(lab / "cells.parquet", "cells"), read_frame(lab / "training.parquet", "training")
    assert set(cells.status) == {"done"}, cells.reason.iloc[0]
    assert cells.steps.tolist() == [6, 6, 6]
    epochs = course.groupby(["split", "metric"]).epoch.apply(lambda values: sorted(set(values))).to_dict()
    evaluated = {"train": [1, 2], "test": [1, 2], "longer": [2]}
    assert epochs == {(split, metric): at for split, at in evaluated.items() for metric in ("loss", "accuracy")}
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
