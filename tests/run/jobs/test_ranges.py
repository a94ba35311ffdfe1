"""Guards that each seed's data fit its network: sizes that differ between seeds, symbols and classes beyond them."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

TASK = """
import torch
from rankfall.tasks._dataset import Dataset, split_samples
INPUTS = "tokens"
TARGETS = "classes"
ONLINE = {online}
def some(rng, *, samples: int = 30):
    x = torch.from_numpy(rng.integers(0, {symbols}, size=(samples, 6)))
    return x, {targets}
class Drawn:
    def __call__(self, rng) -> Dataset:
        x, y = some(rng)
        return Dataset(split_samples(x, y, 20), size_in={size_in}, size_out=3)
    if ONLINE:
        def batch(self, rng, samples):
            return some(rng, samples=samples)
"""
FITTING = {"symbols": "rng.integers(4, 9)", "targets": "x % 3", "size_in": "int(x.max()) + 1", "online": "False"}
SEEDS = range(6)


class Quiet(Progress):
    def note(self, text: str) -> None:
        pass


def trained(folder: Path, monkeypatch: pytest.MonkeyPatch, seeds: str, **task: str) -> dict[int, Any]:
    """Seed -> what the store has of its cell, and its tensors."""
    (folder / "mytask_ranges.py").write_text(TASK.format(**FITTING | task))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop("mytask_ranges", None)
    raw = config(training={"epochs": 1}, architecture={"position": "none"}, grid={"task": "drawn", "seed": seeds})
    raw["tasks"] = {"drawn": {"task": "mytask_ranges:Drawn"}}
    cells, store = make_plan(raw).cells, Store(folder / f"store {seeds}")
    train_cells(cells, store, Settings(torch.device("cpu")), Quiet(), lambda cell: {})
    tensors = {
        key: {name: value[k] for name, value in stack.tensors.items()}
        for stack in store.load_cells([cell.key for cell in cells], cells[0].group)
        for k, key in enumerate(stack.keys)
    }
    found = store.find_cells([cell.key for cell in cells])
    return {cell.seed: (found[cell.key], tensors[cell.key]) for cell in cells}


@pytest.mark.long
def test_a_seed_with_more_symbols_has_a_network_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All members of a stack had the sizes of the first: symbols beyond them were looked up among the next member's weights."""
    together = trained(tmp_path, monkeypatch, "0..5")
    sizes = {seed: len(tensors["embedding.table.weight"]) for seed, (_, tensors) in together.items()}
    assert len(set(sizes.values())) > 1
    for seed in SEEDS:
        ((_, alone),) = trained(tmp_path, monkeypatch, f"{seed}..{seed}").values()
        record, tensors = together[seed]
        assert record.status == "done" and tensors.keys() == alone.keys()
        assert all(tensors[name].shape == value.shape for name, value in alone.items())
        torch.testing.assert_close(tensors["embedding.table.weight"], alone["embedding.table.weight"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("seeds", "task", "said"),
    [
        ("0..3", {"symbols": "4 + (rng.random() < 0.5)", "size_in": "4"}, "inputs from 0 to 4 with size_in = 4"),
        ("5..8", {"symbols": "4", "size_in": "4", "targets": "x % 2 - 2 * (rng.random() < 0.5)"}, "from -2 to -1 with size_out = 3"),
    ],
)  # fmt: skip
def test_a_seed_whose_data_leave_their_range_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: str, task: dict[str, str], said: str
) -> None:
    """The trial of a task draws the data of the first seed, which are right."""
    found = trained(tmp_path, monkeypatch, seeds, **task)
    ends = {record.status for record, _ in found.values()}
    assert ends == {"done", "failed"}
    reasons = {seed: record.record["reason"] for seed, (record, _) in found.items() if record.status == "failed"}
    assert all(said in reason and f"seed {seed}:" in reason for seed, reason in reasons.items()), reasons
