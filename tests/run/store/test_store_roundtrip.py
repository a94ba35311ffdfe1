"""Guards what the store promises when nothing goes wrong: what is saved comes back, by key, exactly."""

import json
import math

import pytest
import torch
from helpers import dataset_of
from safetensors import safe_open

from rankfall.run.store import Store, join


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def records(*statuses, **more):
    return [{"status": status, "reason": "", "steps": 10 + i, **more} for i, status in enumerate(statuses)]


def test_tensors_of_every_dtype_come_back_bit_for_bit(store):
    dtypes = (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
        torch.int8, torch.uint8, torch.bool,
    )  # fmt: skip
    tensors = {str(dtype): (torch.randn(3, 5) * 40).to(dtype) for dtype in dtypes}
    tensors |= {"empty": torch.empty(3, 0), "flat": torch.arange(3), "strided": torch.randn(4, 3).T}
    tensors["odd"] = torch.tensor([math.nan, math.inf, -0.0])
    store.save_stack("g", ["a", "b", "c"], tensors, records("done", "done", "done"))
    (loaded,) = store.load_cells(["a", "b", "c"], "g")
    assert loaded.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert loaded.tensors[name].shape == tensor.shape
        ours, theirs = loaded.tensors[name].contiguous(), tensor.contiguous()
        assert bytes(ours.reshape(-1).view(torch.uint8).numpy()) == bytes(theirs.reshape(-1).view(torch.uint8).numpy())


def test_the_safetensors_library_reads_our_files(store):
    tensors = {
        "a": torch.randn(2, 3),
        "b": torch.ones(2, dtype=torch.bool),
        "c": torch.randn(2, 2, dtype=torch.float64),
    }
    path = store.save_stack("g", ["k", "l"], tensors, records("done", "done"))
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == set(tensors)
        assert all(torch.equal(file.get_tensor(name), tensor) for name, tensor in tensors.items())
        assert json.loads(file.metadata()["contents"])["keys"] == ["k", "l"]


def test_records_come_back_with_what_they_share_and_what_they_do_not(store):
    given = [
        {"status": "done", "code": {"f": "1"}, "loss": math.nan},
        {"status": "failed", "code": {"f": "1"}, "reason": "x"},
    ]
    store.save_stack("g", ["a", "b"], {}, given, {"note": [1, 2]})
    found = store.find_cells(["a", "b", "nothing"], ["g", "no such group"])
    assert found.keys() == {"a", "b"}
    assert found["b"].record == given[1]
    assert math.isnan(found["a"].record["loss"])
    assert "reason" not in found["a"].record
    assert found["a"].meta == {"note": [1, 2]}
    assert (found["b"].index, found["b"].status) == (1, "failed")


def test_loading_some_cells_of_several_stacks_gives_exactly_these_in_the_order_asked(store):
    for start in (0, 4):
        keys = [f"k{i}" for i in range(start, start + 4)]
        store.save_stack("g", keys, {"w": torch.arange(start, start + 4).float().unsqueeze(1)}, records(*["done"] * 4))
    wanted = ["k6", "k1", "k3"]
    tensors, found = join(store.load_cells([*wanted, "unknown"], "g"), wanted)
    assert tensors["w"].squeeze(1).tolist() == [6.0, 1.0, 3.0]
    assert [record["steps"] for record in found] == [12, 11, 13]


def test_the_better_ending_counts_then_the_first_name_and_a_failure_never_replaces_a_result(store):
    done = store.save_stack("g", ["a"], {"w": torch.ones(1)}, records("done"))
    failed = store.save_stack("g", ["a"], {}, records("failed"))
    assert done != failed
    assert store.find_cells(["a"], ["g"])["a"].stack == done
    twins = [done, store.save_stack("g", ["a", "b"], {"w": torch.ones(2)}, records("done", "done"))]
    assert store.find_cells(["a"], ["g"])["a"].stack == min(twins)
    assert len([cell for cell in store.records(["g"]) if cell.key == "a"]) == 3


def test_a_dataset_is_made_once_and_comes_back_equal(store):
    made = []

    def make():
        made.append(1)
        return dataset_of(*(torch.randint(0, 9, (4, 8)) for _ in range(4)), size_in=10, size_out=10, chance=1 / 3)

    first, second = store.dataset("d", make), store.dataset("d", make)
    assert len(made) == 1
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert torch.equal(first.test.targets, second.test.targets)
    assert (second.size_in, second.size_out, second.chance) == (10, 10, 1 / 3)


def test_measured_rows_come_back_by_key_and_an_empty_answer_is_an_answer(store):
    rows = {
        "k1": [{"length": 1, "accuracy": 0.5}, {"length": 2, "accuracy": math.nan}],
        "k2": [],
        "k3": [{"length": None}],
    }
    store.save_rows("paths", rows)
    store.save_rows("paths", {"k4": [{"length": 9, "note": "x"}]})
    found = store.find_rows("paths", ["k1", "k2", "k4", "k5"])
    assert found.keys() == {"k1", "k2", "k4"}
    assert found["k2"] == []
    assert found["k1"][0] == {"length": 1, "accuracy": 0.5}
    assert math.isnan(found["k1"][1]["accuracy"])
    assert found["k4"] == [{"length": 9, "note": "x"}]
    assert store.find_rows("other", ["k1"]) == {}
    assert len(list((store.root / "measures" / "paths").iterdir())) == 2


def test_a_checkpoint_is_replaced_loaded_and_dropped(store):
    assert store.load_checkpoint("s", ["k"]) is None
    store.save_checkpoint("s", {"w": torch.zeros(3)}, {"step": 1, "cells": ["k"]})
    store.save_checkpoint("s", {"w": torch.ones(3)}, {"step": 2, "cells": ["k"]})
    tensors, meta = store.load_checkpoint("s", ["k"])
    assert meta == {"step": 2, "cells": ["k"]}
    assert torch.equal(tensors["w"], torch.ones(3))
    tensors["w"] += 1  # a resumed run writes into what it loads
    store.drop_checkpoint("s")
    store.drop_checkpoint("s")
    assert store.load_checkpoint("s", ["k"]) is None
