"""Training jobs of small plans in this process, and what they leave in the store."""

import os
import signal
from typing import Any

import torch
from torch import Tensor

from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.training import TrainingWork
from rankfall.run.plan import Plan
from rankfall.run.store import Store


class Listener(Progress):
    """Record the notes of a job, and send this process SIGTERM at a step."""

    def __init__(self, kill_at: int | None = None) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.kill_at = kill_at

    def note(self, text: str) -> None:
        self.lines.append(text)

    def step(self, members: Any, history: Any) -> None:
        if members.step_count == self.kill_at:
            os.kill(os.getpid(), signal.SIGTERM)


def train(plan: Plan, store: Store, kill_at: int | None = None, **settings: Any) -> list[str]:
    """Train the cells of a plan. Return the notes of the job."""
    listener = Listener(kill_at)
    TrainingWork(store, Settings(torch.device("cpu"), **settings), listener, plan.origin).train_cells(plan.cells)
    return listener.lines


def find_records(plan: Plan, store: Store) -> dict[str, dict[str, Any]]:
    """Return key -> record of the cells of a plan that are in the store."""
    return {key: cell.record for key, cell in store.find_cells([cell.key for cell in plan.cells]).items()}


def find_statuses(plan: Plan, store: Store) -> dict[str, set[str]]:
    """Return architecture -> statuses of its cells."""
    statuses: dict[str, set[str]] = {}
    for cell in plan.cells:
        statuses.setdefault(cell.architecture.name, set()).add(find_records(plan, store)[cell.key]["status"])
    return statuses


def load_tensors(plan: Plan, store: Store) -> dict[str, dict[str, Tensor]]:
    """Return key of a cell -> its tensors by name."""
    stacks = store.load_cells([cell.key for cell in plan.cells])
    return {
        key: {name: value[member] for name, value in stack.tensors.items()}
        for stack in stacks
        for member, key in enumerate(stack.keys)
    }


def are_equal(plan: Plan, store: Store, other: Store) -> bool:
    """Return whether two stores hold the same bits for all cells of a plan."""
    loaded, expected = load_tensors(plan, store), load_tensors(plan, other)
    return loaded.keys() == expected.keys() == {cell.key for cell in plan.cells} and all(
        torch.equal(value.nan_to_num(-1), expected[key][name].nan_to_num(-1))
        for key, tensors in loaded.items()
        for name, value in tensors.items()
    )
