"""A store whose files are objects: a process with an empty folder finds what another has put, and loses nothing that it makes."""

from pathlib import Path

import pytest
import torch

from rankfall.disk import StoreError
from rankfall.errors import RankfallError
from rankfall.run.objects import Objects, find_objects
from rankfall.run.store import Store

KEYS = ["a", "b"]


@pytest.fixture
def bucket(tmp_path: Path) -> str:
    return f"file://{tmp_path}/bucket"


def store(folder: Path, bucket: str) -> Store:
    Objects(folder, bucket).mark()
    return Store(folder / "store")


def save(store: Store, keys: list[str] = KEYS) -> Path:
    values = {"w": torch.arange(2.0 * len(keys)).reshape(len(keys), 2)}
    return store.save_stack("group", keys, values, [{"status": "done", "steps": 3} for _ in keys])


def test_another_machine_finds_everything(tmp_path: Path, bucket: str) -> None:
    one, other = store(tmp_path / "one", bucket), store(tmp_path / "other", bucket)
    assert not other.find_cells(KEYS) and not other.find_covered("paths") and not other.has_passed("trial")
    assert other.load_checkpoint("stack", KEYS) is None
    save(one)
    one.save_rows("paths", {"a": [{"x": 1.5}], "b": []})
    one.keep_trial("trial", {})
    one.save_checkpoint("stack", {"w": torch.ones(2)}, {"cells": KEYS})
    assert set(other.find_cells(KEYS, ["group"])) == set(KEYS)
    (loaded,) = other.load_cells(KEYS, "group")
    assert torch.equal(loaded.tensors["w"], torch.arange(4.0).reshape(2, 2))
    assert other.find_rows("paths", KEYS) == {"a": [{"x": 1.5}], "b": []}
    assert other.has_passed("trial")
    state = other.load_checkpoint("stack", KEYS)
    assert state is not None and torch.equal(state[0]["w"], torch.ones(2))


def test_the_last_checkpoint_counts_not_an_earlier_copy(tmp_path: Path, bucket: str) -> None:
    one, other = store(tmp_path / "one", bucket), store(tmp_path / "other", bucket)
    for step, writer, reader in ((1, one, other), (2, other, one), (3, one, other)):
        writer.save_checkpoint("stack", {"w": torch.full((2,), float(step))}, {"cells": KEYS})
        state = reader.load_checkpoint("stack", KEYS)
        assert state is not None and state[0]["w"][0] == step
    other.drop_checkpoint("stack")
    assert store(tmp_path / "third", bucket).load_checkpoint("stack", KEYS) is None


def test_a_damaged_object_is_set_aside_for_everybody(tmp_path: Path, bucket: str) -> None:
    one, other = store(tmp_path / "one", bucket), store(tmp_path / "other", bucket)
    path = save(one)
    original = tmp_path / "bucket" / "store" / "stacks" / "group" / path.name
    content = bytearray(original.read_bytes())
    content[-1] ^= 1
    original.write_bytes(content)
    assert set(other.find_cells(KEYS)) == set(KEYS)  # headers are whole
    assert not other.load_cells(KEYS)
    assert not original.exists() and list((tmp_path / "bucket" / "store" / "damaged").iterdir())
    save(other)
    (again,) = store(tmp_path / "third", bucket).load_cells(KEYS)
    assert torch.equal(again.tensors["w"], torch.arange(4.0).reshape(2, 2))


def test_a_damaged_copy_is_fetched_again(tmp_path: Path, bucket: str) -> None:
    one, other = store(tmp_path / "one", bucket), store(tmp_path / "other", bucket)
    save(one)
    (cell,) = {record.stack for record in other.records()}
    assert not cell.exists(), "a search for cells reads headers alone"
    other.load_cells(KEYS)
    content = bytearray(cell.read_bytes())
    content[-1] ^= 1
    cell.write_bytes(content)
    assert other.load_cells(KEYS)


def test_what_cannot_be_reached_is_named(tmp_path: Path) -> None:
    (tmp_path / "bucket").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match=r"cannot write file://.*/bucket/store/stacks/group/"):
        save(store(tmp_path / "one", f"file://{tmp_path}/bucket"))
    (tmp_path / "one" / "objects.json").write_text("{")
    with pytest.raises(RankfallError, match="remove it"):
        find_objects(tmp_path / "one")
