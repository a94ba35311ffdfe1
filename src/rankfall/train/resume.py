"""Training that goes on where it was stopped: members and their history as tensors, and back."""

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from rankfall.train.data import Data
from rankfall.train.fit import Course, fit
from rankfall.train.history import TrainingHistory
from rankfall.train.members import Members
from rankfall.train.objectives._base import Objective


class Checkpoint(Protocol):
    """Keeps, by name, where each part of a job stands."""

    def load(self, name: str) -> Mapping[str, Tensor] | None:
        """What a stopped job has kept of a part; None where it had not come to it."""
        ...

    def after_step(self, name: str, step: int, state: Callable[[], Mapping[str, Tensor]]) -> None:
        """Keeps the state, which can be asked for as long as the job runs, if it is time to; raises if the job is to stop."""
        ...


def fit_or_resume(
    checkpoint: Checkpoint, name: str, members: Members, data: Data, objective: Objective, course: Course
) -> TrainingHistory:
    """`fit` from the beginning, or from where a job that was stopped left the training of this name."""
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
    """Those of this prefix, without it."""
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
