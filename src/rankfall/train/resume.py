"""Training that resumes where it was stopped: members and their history as tensors, and back."""

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from rankfall.train.data import Data
from rankfall.train.fit import Course, fit
from rankfall.train.history import TrainingHistory
from rankfall.train.members import Members
from rankfall.train.objectives._base import Objective


class Checkpoint(Protocol):
    """The interface of checkpoints: the state of each part of a job, by name."""

    def load(self, name: str) -> Mapping[str, Tensor] | None:
        """Return the saved state of a part, or None if a stopped job had not reached it."""
        ...

    def after_step(self, name: str, step: int, state: Callable[[], Mapping[str, Tensor]]) -> None:
        """Save the state if it is due, and raise if the job is to stop. `state` can be called as long as the job runs."""
        ...


def fit_or_resume(
    checkpoint: Checkpoint, name: str, members: Members, data: Data, objective: Objective, course: Course
) -> TrainingHistory:
    """Call `fit` from the beginning, or from where a stopped job left the training of this name."""
    history = TrainingHistory(len(members), course.epochs, members.device)
    found = checkpoint.load(name)
    if found is not None:
        restore(members, history, found)
    state = lambda: state_of(members, history)  # noqa: E731
    return fit(
        members, data, objective, course, history, lambda: checkpoint.after_step(name, members.step_count, state)
    )


def state_of(members: Members, history: TrainingHistory) -> dict[str, Tensor]:
    return add_prefix("members", members.state()) | add_prefix("history", history.tensors)


def restore(members: Members, history: TrainingHistory, found: Mapping[str, Tensor]) -> None:
    members.restore(strip_prefix("members", found))
    history.restore(strip_prefix("history", found))


def add_prefix(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{name}.{key}": value for key, value in tensors.items()}


def strip_prefix(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with this prefix, without it in their names."""
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
