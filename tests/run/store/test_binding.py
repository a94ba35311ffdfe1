"""Guards that a name is bound to its content: a file copied, swapped or moved to another name is set aside and computed again, with every
checksum of its own intact; and that no header can make tensors of bytes that are not there.
"""

import json
import shutil
import time

import pytest
import torch
from helpers import dataset_of
from safetensors.torch import save_file

from rankfall.run.store import Store
from rankfall.run.store.files import Damaged, _seal, read_sealed, write_sealed
from rankfall.run.store.inventory import verify


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
@pytest.mark.parametrize("way", ["copied over", "swapped"])
def test_another_files_content_is_never_read_under_a_name(kind, way, store, caplog):
    write, read = SAME[kind]
    one, two = write(store, 1), write(store, 2)
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    if way == "swapped":
        two.write_bytes(contents[0])
    assert read(Store(store.root), 1) == ANEW.get(kind, [])
    assert read(Store(store.root), 2) == ([2] if way == "copied over" else ANEW.get(kind, []))
    assert len(list((store.root / "damaged").iterdir())) == (1 if way == "copied over" else 2)
    reason = caplog.records[0].getMessage()
    assert "\n" not in reason
    assert "not" in reason or "checksum in its name" in reason


@pytest.mark.parametrize("kind", SAME)
def test_the_doctor_finds_files_under_wrong_names(kind, store):
    write, _ = SAME[kind]
    one, two = write(store, 1), write(store, 2)
    shutil.copy(one, two)
    renamed = two.with_name("0" * 16 + two.name[16:] if kind == "rows" else "renamed" + two.suffix)
    shutil.copy(one, renamed)
    assert verify(Store(store.root)) == (3, 2)
    assert verify(Store(store.root)) == (1, 0)


def test_rows_under_the_name_of_others_with_their_own_checksum(store):
    """As `mv` within the folder leaves them: the content matches the checksum in the name, the keys do not."""
    one, two = save_rows(store, 1), save_rows(store, 2)
    two.unlink()
    one.rename(one.with_name(two.name[:16] + one.name[16:]))
    assert store.find_rows("paths", ["m1", "m2"]) == {}
    assert len(list((store.root / "damaged").iterdir())) == 1


def test_rows_of_another_measure(store):
    path = save_rows(store, 1, "law")
    save_rows(store, 2)
    shutil.copy(path, store.root / "measures" / "paths")
    assert store.find_rows("paths", ["m1"]) == {}
    assert store.find_rows("law", ["m1"]).keys() == {"m1"}
    save_rows(store, 3, "mylab.curves:Drift")
    assert store.find_rows("mylab.curves:Drift", ["m3"]).keys() == {"m3"}


def test_a_stack_of_another_group_or_another_ending(store):
    failed, other = save_stack(store, 1, status="failed"), save_stack(store, 2, "h")
    done = save_stack(store, 1)
    shutil.copy(other, done.parent)
    assert store.find_cells(["k2"], ["g"]) == {}
    assert store.find_cells(["k2"], ["h"]).keys() == {"k2"}
    shutil.copy(failed, done)  # or a cell that failed would be a cell that is done
    assert Store(store.root).find_cells(["k1"])["k1"].status == "failed"
    assert not done.exists()


def test_one_kind_of_file_is_no_other(store):
    path = save_stack(store, 1)
    for place in (store.root / "data" / "d1.safetensors", store.root / "checkpoints" / "c1.safetensors"):
        place.parent.mkdir()
        shutil.copy(path, place)
    assert int(store.dataset("d1", lambda: dataset(99)).train.inputs[0, 0]) == 99
    assert store.load_checkpoint("c1", ["k1"]) is None
    assert store.checkpoints.cells() == {}


def test_a_checkpoint_is_only_for_the_cells_it_is_of(store):
    save_checkpoint(store, 1)
    assert store.load_checkpoint("c1", ["k2"]) is None
    assert not store.checkpoints.path("c1").exists()


def forged(path, tensors, data, meta=None):
    """A file with sound checksums and whatever header."""
    import hashlib

    meta = {"sha256": hashlib.sha256(data).hexdigest()} | (meta or {})
    meta["seal"] = _seal(tensors, meta)
    header = json.dumps({"__metadata__": meta} | tensors).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


FORGED = {
    "no bytes for a shape": ({"w": entry([7, 7, 7], 0, 0)}, b"", "0 bytes"),
    "too few bytes": ({"w": entry([7], 0, 8)}, bytes(8), "8 bytes"),
    "too many bytes": ({"w": entry([1], 0, 8)}, bytes(8), "8 bytes"),
    "overlap": ({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, bytes(12), "does not begin where"),
    "the same bytes twice": ({"a": entry([2], 0, 8), "b": entry([2], 0, 8)}, bytes(8), "does not begin where"),
    "a hole": ({"a": entry([1], 0, 4), "b": entry([1], 8, 12)}, bytes(12), "does not begin where"),
    "beyond the end": ({"a": entry([4], 0, 16)}, bytes(8), "where its header says"),
    "before the beginning": ({"a": entry([1], -4, 0)}, b"", "what tensor a is|bytes"),
    "backwards": ({"a": entry([1], 8, 4)}, bytes(8), "-4 bytes"),
    "a negative size": ({"a": entry([-1, -1], 0, 4)}, bytes(4), "bytes"),
    "true for a size": ({"a": entry([True], 0, 4)}, bytes(4), "bytes"),
    "unknown numbers": ({"a": entry([1], 0, 4, "F31")}, bytes(4), "what tensor a is"),
    "no offsets": ({"a": {"dtype": "F32", "shape": [1]}}, bytes(4), "what tensor a is"),
    "no mapping": ({"a": 3}, bytes(4), "what tensor a is"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_header_makes_no_tensors_of_bytes_that_are_not_there(case, tmp_path):
    table, data, reason = FORGED[case]
    with pytest.raises(Damaged, match=reason):
        read_sealed(forged(tmp_path / "x.safetensors", table, data))


def test_texts_only_in_the_header(tmp_path):
    with pytest.raises(Damaged, match="header"):
        read_sealed(forged(tmp_path / "x.safetensors", {}, b"", {"sha256": 3}))
    save_file({"w": torch.zeros(3)}, tmp_path / "y.safetensors")
    with pytest.raises(Damaged, match="header"):
        read_sealed(tmp_path / "y.safetensors")


def test_tensors_of_no_elements_and_of_one_are_no_damage(tmp_path):
    path = tmp_path / "x.safetensors"
    tensors = {
        "none": torch.empty(3, 0, 2),
        "one": torch.tensor(5),
        "some": torch.arange(6).view(2, 3).to(torch.bfloat16),
    }
    write_sealed(path, tensors, {})
    found, _ = read_sealed(path)
    assert {name: tensor.shape for name, tensor in found.items()} == {name: t.shape for name, t in tensors.items()}
    assert torch.equal(found["some"], tensors["some"])


def test_a_stack_whose_tensors_are_of_fewer_cells(store):
    """Indexing would then take another cell's weights, or fail."""
    path = store.save_stack("g", ["k1", "k2"], {"w": torch.zeros(2, 3)}, [{"status": "done"}] * 2)
    meta = read_sealed(path)[1].meta
    write_sealed(path, {"w": torch.zeros(1, 3)}, {"kind": "stack", "contents": meta["contents"]})
    assert Store(store.root).find_cells(["k1"]) == {}
