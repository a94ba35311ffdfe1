"""Guards that a name is bound to its content: a file that was copied to another name is set aside and computed again."""

import shutil
import time

import pytest
import torch
from helpers import dataset_of

from rankfall.run.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def dataset(number):
    return dataset_of(*[torch.full((2, 3), number)] * 4, size_in=10, size_out=10, chance=0.1)


def save_dataset(store, number):
    store.dataset(f"d{number}", lambda: dataset(number))
    return store.root / "data" / f"d{number}.safetensors"


def save_stack(store, number, group="g", status="done"):
    return store.save_stack(group, [f"k{number}"], {"w": torch.full((1, 3), number)}, [{"status": status}])


def save_checkpoint(store, number):
    return store.save_checkpoint(f"c{number}", {"w": torch.full((3,), number)}, {"cells": [f"k{number}"]})


def save_rows(store, number, measure="paths"):
    return store.save_rows(measure, {f"m{number}": [{"x": number}]})


def read_stack(store, number):
    return [stack.tensors["w"][0, 0].item() for stack in store.load_cells([f"k{number}"], "g")]


SAME = {  # how to write two files of a kind, and what is read under the name of the first: its number, or nothing
    "dataset": (save_dataset, lambda s, n: [int(s.dataset(f"d{n}", lambda: dataset(99)).train.inputs[0, 0])]),
    "stack": (save_stack, read_stack),
    "checkpoint": (
        save_checkpoint,
        lambda s, n: [int(x[0]["w"][0]) for x in [s.load_checkpoint(f"c{n}", [f"k{n}"])] if x],
    ),
    "rows": (save_rows, lambda s, n: [row["x"] for rows in s.find_rows("paths", [f"m{n}"]).values() for row in rows]),
}
ANEW = {"dataset": [99]}  # a data set is made at once; what is missing otherwise is for the job to make


@pytest.mark.parametrize("kind", SAME)
def test_another_files_content_is_never_read_under_a_name(kind, store):
    write, read = SAME[kind]
    one, two = write(store, 1), write(store, 2)
    shutil.copy(two, one)
    assert read(Store(store.root), 1) == ANEW.get(kind, [])
    assert read(Store(store.root), 2) == [2]
    assert len(list((store.root / "damaged").iterdir())) == 1
