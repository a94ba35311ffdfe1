"""Guards against what is called like a file and is none: a pipe that never ends, a circle of links, a socket, a folder. The store passes it
over or sets it aside, `rankfall doctor` names it, and nothing waits for it.
"""

import os
import signal
import socket
import time

import pytest
import torch
from helpers import dataset_of

from rankfall import cli
from rankfall.disk import describe_non_file
from rankfall.run.doctor import local
from rankfall.run.store import Store
from rankfall.run.store.announced import read_announcements
from rankfall.run.store.inventory import Live, find_removable, find_strange, remove, verify
from rankfall.run.store.trials import Trials

PLACES = {  # folder -> the name under which a finished file would be asked for
    "data": "d.safetensors",
    "stacks/g": "0.safetensors",
    "checkpoints": "c.safetensors",
    "measures/paths": "0-0.parquet",
}


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def make_circle(path):
    path.symlink_to(path.name)


def make_folder(path):
    path.mkdir()
    (path / "inside").write_text("somebody's")


def make_link_to_pipe(path):
    os.mkfifo(path.with_name(".pipe"))
    path.symlink_to(".pipe")


ODD = {
    "a named pipe": make_pipe,
    "a socket": make_socket,
    "a circle of symbolic links": make_circle,
    "a folder": make_folder,
    "a link to a pipe": make_link_to_pipe,
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Opening a pipe to which nobody writes would wait for ever."""

    def waited(number, frame):
        raise AssertionError("it waits")

    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def dataset():
    return dataset_of(*[torch.zeros(2, 3)] * 4, size_in=1, size_out=1, chance=0.0)


def filled(root):
    store = Store(root / "store")
    store.save_stack("g", ["a"], {"w": torch.ones(1)}, [{"status": "done"}])
    store.save_rows("paths", {"m": [{"x": 1}]})
    return store


@pytest.mark.parametrize("what", ODD)
def test_the_store_works_around_it(what, tmp_path):
    store = filled(tmp_path)
    for folder, name in PLACES.items():
        (store.root / folder).mkdir(parents=True, exist_ok=True)
        ODD[what](store.root / folder / name)
    assert store.find_cells(["a"]).keys() == {"a"}
    assert len(store.load_cells(["a"], "g")) == 1
    assert store.find_rows("paths", ["m", "n"]) == {"m": [{"x": 1}]}
    assert store.checkpoints.cells() == {}
    assert verify(store) == (2, 0)
    assert find_removable(store, Live(cells={"a"}, measures={"paths": {"m"}})) == []
    named = {path.relative_to(store.root).as_posix(): found for path, found in find_strange(store)}
    assert named == dict.fromkeys(
        [f"{f}/{n}" for f, n in PLACES.items()], what.replace("a link to a pipe", "a named pipe")
    )
    (told,) = [check for check in local.store(tmp_path, False) if "passed over" in check.text]
    assert told.state == "warn"
    assert "\n" not in told.text
    assert "and 1 more" in told.text
    # Under a name that is asked for it is moved out of the way, and what belongs there is made.
    store.dataset("d", dataset)
    assert store.load_checkpoint("c", ["a"]) is None
    assert store.save_checkpoint("c", {}, {"cells": ["a"]}).is_file()
    assert (store.root / "data" / "d.safetensors").is_file()
    assert len(find_strange(store)) == 2


@pytest.mark.parametrize("what", ODD)
def test_small_files_of_the_store(what, tmp_path):
    store = filled(tmp_path)
    for folder in ("trials", "announced"):
        (store.root / folder).mkdir()
        ODD[what](store.root / folder / "t.json")
    assert not Trials(store.root).holds("t")
    assert read_announcements(store.root) == ([], [])
    assert len(find_strange(store)) == 2


def test_folders_that_are_links_in_a_circle(tmp_path):
    store = filled(tmp_path)
    (store.root / "stacks" / "loop").symlink_to("loop")
    (store.root / "stacks" / "g" / "up").symlink_to("..")
    (store.root / "measures" / "pipe").touch()
    assert store.find_cells(["a", "b"]).keys() == {"a"}
    assert verify(store) == (2, 0)
    assert find_removable(store, Live(cells={"a"}, measures={"paths": {"m"}})) == []
    (store.root / "data").symlink_to("data")
    assert cli.main(["doctor", "--results", str(tmp_path), "--verify"]) == 2


def test_cleaning_leaves_a_folder_that_was_set_aside(tmp_path):
    store = filled(tmp_path)
    make_folder(store.root / "x.safetensors")
    store.vault.set_aside(store.root / "x.safetensors", "it is a folder")
    remove(find_removable(store, Live()))
    (aside,) = (store.root / "damaged").iterdir()
    assert (aside / "inside").read_text() == "somebody's"


def test_what_is_odd_in_words(tmp_path):
    assert describe_non_file(tmp_path / "nothing") is None
    assert describe_non_file("/dev/null") == "a device"
    assert describe_non_file(__file__) is None
