"""The arithmetic of training: gradient descent of members on an objective over epochs of data, and evaluation.

Nothing here knows what the members are: networks of cells, or small probes on frozen states. The caller stores the results and shows the
progress.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.tasks._dataset import TEST, TRAIN
from rankfall.train.clock import StepClock
from rankfall.train.data import Data, group, steps_per_epoch
from rankfall.train.history import TrainingHistory, sums_of
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members
from rankfall.train.objectives._base import Objective

EVALUATIONS = 50  # approximately the most evaluations on the test set in a run


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
        for some in group(batches, members.steps_at_once):
            for graded in members.steps(objective, some):
                history.add(TRAIN, epoch, sums_of(graded), taking)
            if members.step_count < (epoch + 1) * steps:
                clock.leave_out(after_step)
        clock.end(steps - first)
        last = epoch + 1 == course.epochs
        if TEST in data.splits and ((epoch + 1) % max(1, course.epochs // EVALUATIONS) == 0 or last):
            history.add(TEST, epoch, evaluate(members, data, objective, TEST), taking)
        mean = history.mean(TRAIN, "loss", epoch)
        members.status.masked_fill_((mean < members.stop_loss) & (members.status == RUNNING), STOPPED)
        after_step()  # only now is the epoch's record whole, and a checkpoint of it complete
    return history


@torch.no_grad()
def evaluate(members: Members, data: Data, objective: Objective, split: str) -> dict[str, Tensor]:
    """Return the sums (K,) over a split of every metric and of the number of targets, without dropout."""
    found: dict[str, Tensor] = {}
    trained = data.splits[split].inputs.shape[2] == data.train.inputs.shape[2]  # the length that engines support
    for batch in data.evaluation_batches(split, members.seeds):
        graded = members.grade(objective, batch) if trained else objective(members.module, batch)
        for name, value in sums_of(graded).items():
            found[name] = found.get(name, torch.zeros_like(value, dtype=torch.float64)) + value
    return found
