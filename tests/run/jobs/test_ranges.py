"""Guards that each seed's data fit its network: sizes that differ between seeds, symbols and classes beyond them."""

import sys
from pathlib import Path

import pytest
import torch
from helpers import config
from training_jobs import find_records, load_tensors, train

from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store

TASK = """
import torch
from rankfall.tasks._dataset import Dataset, split_samples
INPUTS = "tokens"
TARGETS = "classes"
def draw(rng) -> Dataset:
    x = torch.from_numpy(rng.integers(0, {symbols}, size=(30, 6)))
    return Dataset(split_samples(x, {targets}, 20), size_in={size_in}, size_out=3)
"""
FITTING = {"symbols": "rng.integers(4, 9)", "targets": "x % 3", "size_in": "int(x.max()) + 1"}


def train_seeds(lab: Path, seeds: str, **task: str) -> tuple[Plan, Store]:
    (lab / "mytask_ranges.py").write_text(TASK.format(**FITTING | task))
    sys.modules.pop("mytask_ranges", None)
    raw = config(training={"epochs": 1}, architecture={"position": "none"}, grid={"task": "drawn", "seed": seeds})
    plan, store = make_plan(raw | {"tasks": {"drawn": {"task": "mytask_ranges:draw"}}}), Store(lab / f"store {seeds}")
    train(plan, store)
    return plan, store


@pytest.mark.long
def test_a_seed_with_more_symbols_has_a_network_of_its_own(lab: Path) -> None:
    """All members of a stack had the sizes of the first: symbols beyond them were looked up among the next member's weights."""
    plan, store = train_seeds(lab, "0..5")
    together, table = load_tensors(plan, store), "embedding.table.weight"
    assert {record["status"] for record in find_records(plan, store).values()} == {"done"}
    assert len({len(tensors[table]) for tensors in together.values()}) > 1
    for cell in plan.cells:
        (alone,) = load_tensors(*train_seeds(lab, f"{cell.seed}..{cell.seed}")).values()
        tensors = together[cell.key]
        assert {name: value.shape for name, value in tensors.items()} == {name: alone[name].shape for name in alone}
        torch.testing.assert_close(tensors[table], alone[table])


@pytest.mark.long
@pytest.mark.parametrize(
    ("seeds", "task", "message"),
    [
        ("0..3", {"symbols": "4 + (rng.random() < 0.5)", "size_in": "4"}, "inputs from 0 to 4 with size_in = 4"),
        ("5..8", {"symbols": "4", "size_in": "4", "targets": "x % 2 - 2 * (rng.random() < 0.5)"}, "from -2 to -1 with size_out = 3"),
    ],
)  # fmt: skip
def test_a_seed_whose_data_leave_their_range_fails_alone(
    lab: Path, seeds: str, task: dict[str, str], message: str
) -> None:
    """The trial of a task draws the data of the first seed, which are right."""
    plan, store = train_seeds(lab, seeds, **task)
    records = find_records(plan, store)
    assert {record["status"] for record in records.values()} == {"done", "failed"}
    reasons = {cell.seed: records[cell.key]["reason"] for cell in plan.cells if records[cell.key]["status"] == "failed"}
    assert all(message in reason and f"seed {seed}:" in reason for seed, reason in reasons.items()), reasons
