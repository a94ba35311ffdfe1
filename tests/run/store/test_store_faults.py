"""Guards finished work against what really happens: flipped bytes, truncation, full and read-only disks, kills,
rivals, slow disks.
"""

import errno
import logging
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from helpers import dataset_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankfall.disk import atomic
from rankfall.run.store import Store, StoreError
from rankfall.run.store.inventory import Live, find_removable, remove, verify

pytestmark = pytest.mark.long

DATASET = dataset_of(*(torch.arange(12).reshape(3, 4) + i for i in range(4)), size_in=10, size_out=10, chance=0.1)
ROWS = {"k1": [{"length": 1, "accuracy": 0.25}], "k2": []}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the second look at a damaged file comes at once


def save(store, keys=("a", "b"), size=7):
    records = [{"status": "done", "reason": "", "steps": 5} for _ in keys]
    return store.save_stack("g", list(keys), {"w": torch.arange(len(keys) * size).float().view(-1, size)}, records)


def find_damaged(store):
    return list((store.root / "damaged").glob("*"))


def find_temporary(root):
    return list(Path(root).rglob(".*.tmp"))


KINDS = {  # how to write one file of each kind, and how to read it back in full
    "stack": (save, lambda s: [(x.keys, x.tensors["w"].tolist(), x.records) for x in s.load_cells(["a", "b"], "g")]),
    "checkpoint": (
        lambda s: s.save_checkpoint("c", {"w": torch.arange(9.0)}, {"step": 3, "cells": ["a"]}),
        lambda s: [(x[0]["w"].tolist(), x[1]) for x in [s.load_checkpoint("c", ["a"])] if x is not None],
    ),
    "rows": (lambda s: s.save_rows("m", ROWS), lambda s: [x for x in [s.find_rows("m", ["k1", "k2"])] if x]),
    "dataset": (
        lambda s: (s.dataset("d", lambda: DATASET), s.root / "data" / "d.safetensors")[1],
        lambda s: [x.train.inputs.tolist() for x in [s.dataset("d", lambda: None)] if x is not None],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_bits_are_noticed_or_harmless(kind, tmp_path_factory, data):
    """A read after the damage gives exactly what was written, or nothing and a file in damaged/: never something
    else.
    """
    write, read = KINDS[kind]
    store = Store(tmp_path_factory.mktemp("flip"))
    path = write(store)
    before = read(store)
    assert before
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1), label="position")
    content[position] ^= data.draw(st.integers(1, 255), label="mask")
    path.write_bytes(content)
    try:
        after = read(Store(store.root))
    except (AttributeError, TypeError):  # the dataset's maker was called and made nothing: it counted as missing
        assert kind == "dataset"
        after = []
    assert after == before or (after == [] and len(find_damaged(store)) == 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_truncated_file_is_set_aside_with_one_line_that_says_what_and_where(kind, share, store, caplog):
    write, read = KINDS[kind]
    path = write(store)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with caplog.at_level(logging.WARNING):
        if kind == "dataset":
            store.dataset("d", lambda: DATASET)  # made anew at once
        else:
            assert read(store) == []
    assert path.exists() is (kind == "dataset")
    (moved,) = find_damaged(store)
    (message,) = [record.getMessage() for record in caplog.records]
    assert str(path) in message and str(moved) in message and "\n" not in message


def test_damage_falls_back_on_another_file_that_holds_the_cell(store):
    first, second = sorted([save(store, ["a", "b"]), save(store, ["a", "c"])])
    content = bytearray(first.read_bytes())
    content[-1] ^= 1  # in the tensors: the header still says that the cell is there
    first.write_bytes(content)
    (loaded,) = store.load_cells(["a"], "g")
    assert loaded.tensors["w"].tolist() == [[0, 1, 2, 3, 4, 5, 6]]
    assert second.exists() and not first.exists()


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [("fsync", errno.ENOSPC, "disk is full"), ("replace", errno.EROFS, "read-only"), ("fsync", errno.EDQUOT, "quota")],
)
def test_a_failure_to_write_leaves_the_old_content_and_no_litter(call, code, words, tmp_path, monkeypatch):
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def fail(*arguments):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StoreError, match=words), atomic(target) as handle:
            handle.write(b"new")
    assert target.read_bytes() == b"old"
    assert find_temporary(tmp_path) == []


WRITER = """
import sys, torch
from rankfall.run.store import Store
store = Store(sys.argv[1])
print("ready", flush=True)
for i in range(int(sys.argv[2])):
    records = [{"status": "done", "reason": "", "steps": 5} for _ in "ab"]
    store.save_stack("g", ["a", "b"], {"w": torch.arange(2_000_000.0).view(2, -1)}, records)
    store.save_rows("m", {"k1": [{"x": 1}] * 1000})
    store.save_checkpoint("c", {"w": torch.zeros(500_000) + i}, {"step": i, "cells": []})
"""


def start_writer(store, times):
    command = [sys.executable, "-c", WRITER, str(store.root), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def test_kill_9_in_the_middle_of_writing_leaves_nothing_half_visible(store):
    choose = random.Random(0)
    for _ in range(3):
        process = start_writer(store, 10_000)
        process.stdout.readline()
        subprocess.run(["sleep", f"{choose.uniform(0.0, 0.25):.3f}"])  # time.sleep is disabled above
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert verify(store)[1] == 0
        for stack in store.load_cells(["a", "b"], "g"):
            assert torch.equal(stack.tensors["w"], torch.arange(2_000_000.0).view(2, -1))
    live = Live(cells={"a", "b"}, measures={"m": {"k1"}})
    items = [item for item in find_removable(store, live) if item.kind == "temporary"]
    assert len(items) == len(find_temporary(store.root))
    remove(items, store)
    assert find_temporary(store.root) == []


def test_two_processes_that_write_the_same_at_once_leave_one_good_copy(store):
    processes = [start_writer(store, 8) for _ in range(2)]
    reads = 0
    while any(process.poll() is None for process in processes):
        for stack in Store(store.root).load_cells(["a"], "g"):
            assert stack.tensors["w"][0, -1] == 999_999
            reads += 1
    assert [process.wait() for process in processes] == [0, 0]
    assert reads > 0
    for folder in ("stacks/g", "measures/m"):
        assert len(list((store.root / folder).iterdir())) == 1
    assert store.load_checkpoint("c", [])[1] == {"step": 7, "cells": []}
    assert find_temporary(store.root) == find_damaged(store) == []
