"""Check path effectiveness on every published task: points in the plane, padding that asks for nothing, batches of any size."""

from itertools import product
from typing import Any

import pytest
import torch
from helpers import by_member, config

from rankfall.measure.context import Context
from rankfall.nets.network import Network, Shape, build
from rankfall.random_streams import stream
from rankfall.rank.paths import measure as module
from rankfall.rank.paths.measure import accuracy, paths
from rankfall.run.plan import make_plan
from rankfall.tasks._dataset import Dataset
from rankfall.tasks.convex_hull import convex_hull
from rankfall.tasks.memorization import memorization
from rankfall.train.data import Data

SHAPES = {"convex_hull": ("vectors", 3, 12), "memorization": ("tokens", 2, 8)}


def datasets(task: str, folder: Any) -> list[Dataset]:
    if task == "convex_hull":
        return [convex_hull(stream(seed, "data"), train=30, test=13, points=7) for seed in (0, 1)]
    path = folder / "pairs.tsv"
    rows = "".join(f"{'word ' * (n % 4)}number {n}\tsecond {n}\n" for n in range(30))
    path.write_text(f"sentence1\tsentence2\n{rows}")
    options = {"text": str(path), "padded": True, "train": 30, "test": 13, "length": 12, "vocabulary": 200}
    return [memorization(stream(seed, "data"), **options) for seed in (0, 1)]


def example(task: str, folder: Any) -> tuple[Network, Data, list[Any]]:
    inputs, heads, width = SHAPES[task]
    embedding = "coordinates" if inputs == "vectors" else {"name": "mapped_token", "frozen": 0}
    net = {"position": "none", "embedding": embedding, "depth": 3, "heads": heads, "width": width}
    raw = config() | {"tasks": {task: {}}, "architectures": {"net": net}}
    raw["grid"] = [{"task": task, "architecture": "net", "training": "short", "seed": [0, 1]}]
    cells, sets = make_plan(raw).cells, datasets(task, folder)
    shape = Shape(inputs, "classes", sets[0].length, sets[0].size_in, sets[0].size_out)
    network = build(cells[0].architecture, shape, 2, torch.float64)
    generator = torch.Generator().manual_seed(3)
    for value in network.parameters():
        value.data = 0.7 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return network.requires_grad_(False), Data.from_datasets(sets, torch.float64, torch.device("cpu")), list(cells)


@pytest.mark.parametrize("task", SHAPES)
def test_references_and_length_zero_by_hand(task: str, tmp_path: Any) -> None:
    network, data, cells = example(task, tmp_path)
    rows = by_member(paths, Context(network, data, cells), counts=[1, 3], repeats=2)
    asked = data.test.targets != -1
    assert asked.all() == (task == "convex_hull")  # padding is there to be ignored
    lifted = network.lift(data.test.inputs)
    start = torch.nn.functional.layer_norm(lifted, lifted.shape[-1:], eps=1e-12)
    guesses = {"whole": network(data.test.inputs).argmax(-1), "path": network.head(start).argmax(-1)}
    for row in rows:
        k = row["member"]
        if row["kind"] == "chance":
            assert row["accuracy"] == pytest.approx(float(data.chance[k]))
        elif row["kind"] == "whole" or row["length"] == 0:
            right = (guesses[row["kind"]][k] == data.test.targets[k])[asked[k]].double().mean()
            assert row["accuracy"] == pytest.approx(float(right))
    drawn = {(row["evaluation"], row["length"], row["paths"], row["repeat"]) for row in rows if row["kind"] == "path"}
    assert drawn == set(product(("recomputed", "frozen"), range(4), (1, 3), (0, 1)))


@pytest.mark.parametrize("task", SHAPES)
def test_the_batch_size_does_not_matter(task: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    network, data, cells = example(task, tmp_path)
    whole = by_member(paths, Context(network, data, cells), counts=[2], repeats=1)
    original = accuracy
    monkeypatch.setattr(module, "accuracy", lambda data, batch, predict: original(data, 3, predict))
    assert by_member(paths, Context(network, data, cells), counts=[2], repeats=1) == whole
