"""Guards the curves for TensorBoard: every cell has its own, with the numbers of the table `training`."""

from pathlib import Path

import pytest
import torch
from helpers import config

from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import make_plan
from rankfall.run.store import Store
from rankfall.train.loop import means

events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def test_curves_of_cells_are_those_of_their_histories(tmp_path: Path) -> None:
    plan = make_plan(config(training={"epochs": 3}, grid={"seed": "0..1"}))
    store, folder = Store(tmp_path / "store"), tmp_path / "curves"
    train_cells(plan.cells, store, Settings(torch.device("cpu"), curves=folder), Progress(), plan.origin)
    (stack,) = store.load_cells([cell.key for cell in plan.cells])
    history = {name.removeprefix("history."): value for name, value in stack.tensors.items() if "history." in name}
    assert len(list(folder.glob("*/*"))) == 2
    for member, key in enumerate(stack.keys):
        (own,) = folder.glob(f"*/*({key[:6]})")
        found = events.EventAccumulator(str(own)).Reload()
        drawn = {(tag, one.step): one.value for tag in found.Tags()["scalars"] for one in found.Scalars(tag)}
        kept = {(f"{metric}/{split}", epoch): value for epoch, split, metric, value in means(history, member)}
        assert drawn == pytest.approx(kept)
