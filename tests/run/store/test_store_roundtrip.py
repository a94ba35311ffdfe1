"""Guards what the store promises when nothing goes wrong: what is saved comes back, by key, exactly; also where its files are objects, to a
process with an empty folder."""

import math
from pathlib import Path

import pytest
import torch
from helpers import dataset_of

from rankfall.disk import StoreError
from rankfall.errors import RankfallError
from rankfall.run.objects import Objects, find_objects
from rankfall.run.store import Store, join

KEYS = ["a", "b"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def save(store: Store, keys: list[str], *statuses: str, start: int = 0) -> Path:
    records = [
        {"status": status, "reason": "", "steps": start + i}
        for i, status in enumerate(statuses or ["done"] * len(keys))
    ]
    return store.save_stack("g", keys, {"w": torch.arange(start, start + len(keys)).float().unsqueeze(1)}, records)


def test_tensors_come_back_bit_for_bit(store: Store) -> None:
    """Also those that safetensors alone refuses: strided, or two of one memory."""
    whole = torch.randn(3, 5)
    tensors = {"half": whole.half(), "bool": whole > 0, "empty": torch.empty(3, 0), "strided": torch.randn(4, 3).T}
    tensors |= {"whole": whole, "same": whole.view(3, 5, 1), "odd": torch.tensor([math.nan, math.inf, -0.0])}
    store.save_stack("g", ["a", "b", "c"], tensors, [{"status": "done"}] * 3)
    (loaded,) = store.load_cells(["a", "b", "c"], "g")
    assert loaded.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert (loaded.tensors[name].dtype, loaded.tensors[name].shape) == (tensor.dtype, tensor.shape)
        values = (value.contiguous().reshape(-1).view(torch.uint8) for value in (loaded.tensors[name], tensor))
        assert torch.equal(*values)


def test_records_come_back_with_what_they_share_and_what_they_do_not(store: Store) -> None:
    shared = {"code": {"f": "1"}}
    records = [{"status": "done", "loss": math.nan, **shared}, {"status": "failed", "reason": "x", **shared}]
    store.save_stack("g", KEYS, {}, records)
    cells = store.find_cells([*KEYS, "nothing"], ["g", "no such group"])
    assert cells.keys() == {*KEYS}
    assert cells["b"].record == records[1]
    assert math.isnan(cells["a"].record["loss"]) and "reason" not in cells["a"].record
    assert (cells["b"].index, cells["b"].status) == (1, "failed")


def test_loading_some_cells_of_several_stacks_gives_exactly_these_in_the_order_asked(store: Store) -> None:
    for start in (0, 4):
        save(store, [f"k{i}" for i in range(start, start + 4)], start=start)
    keys = ["k6", "k1", "k3"]
    tensors, records = join(store.load_cells([*keys, "unknown"], "g"), keys)
    assert tensors["w"].squeeze(1).tolist() == [6.0, 1.0, 3.0]
    assert [record["steps"] for record in records] == [6, 1, 3]


def test_the_better_ending_counts_then_the_first_name_and_a_failure_never_replaces_a_result(store: Store) -> None:
    done, failed = save(store, ["a"]), save(store, ["a"], "failed")
    assert done != failed and store.find_cells(["a"], ["g"])["a"].stack == done
    twin = save(store, KEYS)
    assert store.find_cells(["a"], ["g"])["a"].stack == min(done, twin)
    assert len([cell for cell in store.records(["g"]) if cell.key == "a"]) == 3


def test_a_dataset_is_made_once_and_comes_back_equal(store: Store) -> None:
    tensors = [torch.randint(0, 9, (4, 8)) for _ in range(4)]
    made = iter([dataset_of(*tensors, size_in=10, size_out=10, chance=1 / 3)])
    first, second = (store.dataset("d", lambda: next(made)) for _ in range(2))
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert torch.equal(first.test.targets, second.test.targets)
    assert (second.size_in, second.size_out, second.chance) == (10, 10, 1 / 3)


def test_measured_rows_come_back_by_key_and_an_empty_answer_is_an_answer(store: Store) -> None:
    rows = [{"length": 1, "accuracy": 0.5}, {"length": 2, "accuracy": math.nan}]
    store.save_rows("paths", {"k1": rows, "k2": [], "k3": [{"length": None}]})
    store.save_rows("paths", {"k4": [{"length": 9, "note": "x"}]})
    loaded = store.find_rows("paths", ["k1", "k2", "k4", "k5"])
    assert loaded.keys() == {"k1", "k2", "k4"}
    assert loaded["k2"] == [] and loaded["k4"] == [{"length": 9, "note": "x"}]
    assert loaded["k1"][0] == rows[0] and math.isnan(loaded["k1"][1]["accuracy"])
    assert store.find_rows("other", ["k1"]) == {}


def test_a_checkpoint_is_replaced_loaded_and_dropped(store: Store) -> None:
    assert store.load_checkpoint("s", ["k"]) is None
    for step in (1, 2):
        store.save_checkpoint("s", {"w": torch.full((3,), float(step))}, {"step": step, "cells": ["k"]})
    state = store.load_checkpoint("s", ["k"])
    assert state is not None and state[1] == {"step": 2, "cells": ["k"]}
    assert torch.equal(state[0]["w"], torch.full((3,), 2.0))
    state[0]["w"] += 1  # a resumed run writes into what it loads
    for _ in range(2):
        store.drop_checkpoint("s")
    assert store.load_checkpoint("s", ["k"]) is None


# A store whose files are objects.


@pytest.fixture
def bucket(tmp_path: Path) -> str:
    return f"file://{tmp_path}/bucket"


def open_store(folder: Path, bucket: str) -> Store:
    Objects(folder, bucket).mark()
    return Store(folder / "store")


def flip_last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_another_machine_finds_everything(tmp_path: Path, bucket: str) -> None:
    one, other = (open_store(tmp_path / name, bucket) for name in ("one", "other"))
    assert not other.find_cells(KEYS) and not other.find_covered("paths") and not other.has_passed("trial")
    assert other.load_checkpoint("stack", KEYS) is None
    save(one, KEYS)
    one.save_rows("paths", {"a": [{"x": 1.5}], "b": []})
    one.keep_trial("trial", {})
    assert set(other.find_cells(KEYS, ["g"])) == set(KEYS)
    (loaded,) = other.load_cells(KEYS, "g")
    assert loaded.tensors["w"].squeeze(1).tolist() == [0, 1]
    assert other.find_rows("paths", KEYS) == {"a": [{"x": 1.5}], "b": []}
    assert other.has_passed("trial")


def test_the_last_checkpoint_counts_not_an_earlier_copy(tmp_path: Path, bucket: str) -> None:
    one, other = (open_store(tmp_path / name, bucket) for name in ("one", "other"))
    for step, writer, reader in ((1, one, other), (2, other, one), (3, one, other)):
        writer.save_checkpoint("stack", {"w": torch.full((2,), float(step))}, {"cells": KEYS})
        state = reader.load_checkpoint("stack", KEYS)
        assert state is not None and state[0]["w"][0] == step
    other.drop_checkpoint("stack")
    assert open_store(tmp_path / "third", bucket).load_checkpoint("stack", KEYS) is None


def test_a_damaged_object_is_set_aside_for_everybody(tmp_path: Path, bucket: str) -> None:
    one, other = (open_store(tmp_path / name, bucket) for name in ("one", "other"))
    original = tmp_path / "bucket" / "store" / "stacks" / "g" / save(one, KEYS).name
    flip_last_byte(original)
    assert set(other.find_cells(KEYS)) == set(KEYS)  # headers are whole
    assert not other.load_cells(KEYS)
    assert not original.exists() and list((tmp_path / "bucket" / "store" / "damaged").iterdir())
    save(other, KEYS)
    assert open_store(tmp_path / "third", bucket).load_cells(KEYS)


def test_a_damaged_copy_is_fetched_again(tmp_path: Path, bucket: str) -> None:
    one, other = (open_store(tmp_path / name, bucket) for name in ("one", "other"))
    save(one, KEYS)
    (stack,) = {record.stack for record in other.records()}
    assert not stack.exists(), "a search for cells reads headers alone"
    other.load_cells(KEYS)
    flip_last_byte(stack)
    assert other.load_cells(KEYS)


def test_what_cannot_be_reached_is_named(tmp_path: Path, bucket: str) -> None:
    (tmp_path / "bucket").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match=r"cannot write file://.*/bucket/store/stacks/g/"):
        save(open_store(tmp_path / "one", bucket), KEYS)
    (tmp_path / "one" / "objects.json").write_text("{")
    with pytest.raises(RankfallError, match="remove it"):
        find_objects(tmp_path / "one")
