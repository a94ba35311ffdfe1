"""The training loop: gradient descent of members on an objective over epochs of data, evaluation, and the history that it fills.

Nothing here knows what the members are: networks of cells, or small probes on frozen states. The caller stores the results and shows the
progress. Training resumes from the tensors of `state_of` with the same bits.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from rankfall.tasks._dataset import TEST, TRAIN
from rankfall.train.data import Data, group, steps_per_epoch
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members
from rankfall.train.objectives._base import Graded, Objective

EVALUATIONS = 50  # approximately the most evaluations on the test set in a run
FEWEST = 20  # steps that are timed: with fewer, the preparations of the first step or one interruption would dominate
ASKED = "asked"  # metric: the number of targets


class TrainingHistory:
    """The history of training: for each member, epoch and split, sums of every metric and the number of targets.

    The tensors are (K, epochs), named `split.metric` and filled in place, so that a checkpoint of them is the record so far. A mean is sum
    over count. The count is `split.metric.asked` for a metric over a part of the targets, else `split.asked`. If it is zero there is no
    mean: the epoch was not reached, or the split was not evaluated.
    """

    def __init__(self, members: int, epochs: int, device: torch.device) -> None:
        self.shape, self.device = (members, epochs), device
        self.tensors: dict[str, Tensor] = {}

    def add(self, split: str, epoch: int, sums: Mapping[str, Tensor], taking: Tensor) -> None:
        """Add the sums (K,) of a batch or of a whole split, for the members in `taking` (K,)."""
        for metric, value in sums.items():
            name = f"{split}.{metric}"
            if name not in self.tensors:
                self.tensors[name] = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
            self.tensors[name][:, epoch] += torch.where(taking, value, 0)

    def mean(self, split: str, metric: str, epoch: int) -> Tensor:
        """Return the mean of a metric in an epoch (K,)."""
        name = f"{split}.{metric}"
        return self.tensors[name][:, epoch] / self.tensors[count_of(name, self.tensors)][:, epoch]

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = {name: value.to(self.device, copy=True) for name, value in tensors.items()}


def sums_of(graded: Graded) -> dict[str, Tensor]:
    """Return the sums of a batch, by metric (K,)."""
    counts = {f"{metric}.{ASKED}": value for metric, value in graded.asked_of.items()}
    return {"loss": graded.loss * graded.asked, ASKED: graded.asked, **graded.sums, **counts}


def count_of(name: str, sums: Mapping[str, Tensor]) -> str:
    """Return the name of the number of targets in a metric's sum, `metric` or `split.metric`."""
    specific, split = f"{name}.{ASKED}", name.rpartition(".")[0]
    return specific if specific in sums else f"{split}.{ASKED}" if split else ASKED


def is_count(name: str) -> bool:
    """Return whether a sum is a number of targets."""
    return name.rpartition(".")[2] == ASKED


def means_of(sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return every metric (K,) of a split from its sums."""
    return {metric: value / sums[count_of(metric, sums)] for metric, value in sums.items() if not is_count(metric)}


def means(tensors: Mapping[str, Tensor], member: int) -> Iterator[tuple[int, str, str, float]]:
    """Yield (epochs completed, split, metric, mean) of a member, epoch by epoch, from the tensors of a history."""
    course = {name: value[member].tolist() for name, value in tensors.items()}
    counts = {name: course[count_of(name, tensors)] for name in course if not is_count(name)}
    for epoch in range(max(map(len, course.values()), default=0)):
        for name, count in counts.items():
            split, _, metric = name.rpartition(".")
            if count[epoch]:
                yield epoch + 1, split, metric, course[name][epoch] / count[epoch]


class StepClock:
    """A clock of the seconds per step of all members, epoch by epoch.

    On a GPU an epoch ends with its last kernel. Other work between its steps counts there, since reading the clock would make the GPU wait.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.epochs: list[float] = []  # seconds per step
        self.steps = 0
        self.began = self.away = 0.0

    def begin(self) -> None:
        self.away, self.began = 0.0, self.now()

    def leave_out(self, work: Callable[[], None]) -> None:
        """Run work that is not part of a step."""
        start = time.monotonic()
        work()
        if self.device.type != "cuda":
            self.away += time.monotonic() - start

    def end(self, steps: int) -> None:
        if steps:
            self.epochs.append((self.now() - self.began - self.away) / steps)
            self.steps += steps

    def now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.monotonic()

    @property
    def step_seconds(self) -> float | None:
        """The median over the epochs of this job, so that preparations of the first steps do not count. None for too few steps."""
        return statistics.median(self.epochs) if self.steps >= FEWEST else None


@dataclass(frozen=True)
class Course:
    """The number of epochs, and how they are split into batches."""

    epochs: int
    batch: int
    shuffle: bool = True


def fit(
    members: Members,
    data: Data,
    objective: Objective,
    course: Course,
    history: TrainingHistory | None = None,
    after_step: Callable[[], None] = lambda: None,
    clock: StepClock | None = None,
) -> TrainingHistory:
    """Train until the last epoch, or until no member is running. Begin at the members' step count.

    `history` is filled in place and returned. `after_step` may save it with the members' state, and may raise. `clock` times the steps.
    """
    clock = clock or StepClock("cpu")
    history = history or TrainingHistory(len(members), course.epochs, members.device)
    steps = steps_per_epoch(data.samples, course.batch)
    for epoch in range(members.step_count // steps, course.epochs):
        if not (members.status == RUNNING).any():
            break
        members.begin_epoch(epoch, course.epochs)
        # A member that stopped earlier is not part of this epoch's record, so that the record does not depend on the other members. This is
        # decided from the counted steps, because training may resume in the middle of the epoch.
        taking = (members.status == RUNNING) | ((members.status == DIVERGED) & (members.last_step >= epoch * steps))
        first = members.step_count - epoch * steps
        clock.begin()
        batches = data.epoch(members.seeds, epoch, course.batch, course.shuffle, first)
        for chunk in group(batches, members.steps_at_once):
            for graded in members.steps(objective, chunk):
                history.add(TRAIN, epoch, sums_of(graded), taking)
            if members.step_count < (epoch + 1) * steps:
                clock.leave_out(after_step)
        clock.end(steps - first)
        last = epoch + 1 == course.epochs
        if TEST in data.splits and ((epoch + 1) % max(1, course.epochs // EVALUATIONS) == 0 or last):
            history.add(TEST, epoch, evaluate(members, data, objective, TEST), taking)
        mean = history.mean(TRAIN, "loss", epoch)
        members.status.masked_fill_((mean < members.stop_loss) & (members.status == RUNNING), STOPPED)
        after_step()  # the epoch's record is complete only now, and so is a checkpoint of it
    return history


@torch.no_grad()
def evaluate(members: Members, data: Data, objective: Objective, split: str) -> dict[str, Tensor]:
    """Return the sums (K,) over a split of every metric and of the number of targets, without dropout."""
    sums: dict[str, Tensor] = {}
    trained = data.splits[split].inputs.shape[2] == data.train.inputs.shape[2]  # the length that engines support
    for batch in data.evaluation_batches(split, members.seeds):
        graded = members.grade(objective, batch) if trained else objective(members.module, batch)
        for name, value in sums_of(graded).items():
            sums[name] = sums.get(name, torch.zeros_like(value, dtype=torch.float64)) + value
    return sums


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
    """Call `fit` from the beginning, or from the last checkpoint of this name."""
    history = TrainingHistory(len(members), course.epochs, members.device)
    saved = checkpoint.load(name)
    if saved is not None:
        restore(members, history, saved)
    state = lambda: state_of(members, history)  # noqa: E731
    return fit(
        members, data, objective, course, history, lambda: checkpoint.after_step(name, members.step_count, state)
    )


def state_of(members: Members, history: TrainingHistory) -> dict[str, Tensor]:
    """Return the tensors from which training resumes with the same bits."""
    return add_prefix("members", members.state()) | add_prefix("history", history.tensors)


def restore(members: Members, history: TrainingHistory, tensors: Mapping[str, Tensor]) -> None:
    members.restore(strip_prefix("members", tensors))
    history.restore(strip_prefix("history", tensors))


def add_prefix(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{name}.{key}": value for key, value in tensors.items()}


def strip_prefix(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with this prefix, without it in their names."""
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
