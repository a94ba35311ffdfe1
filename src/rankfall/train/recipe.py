"""Conversion of a cell's architecture and training to the members and hyperparameters of `fit`."""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch

from rankfall import components
from rankfall.design import Architecture, Training
from rankfall.nets.network import Shape, build
from rankfall.train.captured import Captured, say_unserved
from rankfall.train.device import matrix_products
from rankfall.train.loop import Course
from rankfall.train.members import Hyperparameters, Members
from rankfall.train.objectives._base import Objective, Samples
from rankfall.train.schedules.constant import constant


class Untrained:
    """The optimiser of untrained networks, whose keys do not contain one. It takes no steps."""

    slots = 0

    def step(self, *given: object) -> None:
        raise AssertionError("a step of untrained networks")


def initial(
    architecture: Architecture, shape: Shape, seeds: Sequence[int], trainings: Sequence[Training], device: torch.device
) -> Members:
    """Return networks at their initial values, one per seed. Trainings may differ in the hyperparameters that each member of a stack
    has."""
    shared = trainings[0]
    network = build(architecture, shape, len(seeds), getattr(torch, shared.dtype))
    network.initialise(list(seeds))
    optimizer = components.bound("optimizer", shared.optimizer) if shared.epochs else Untrained()
    members = Members(
        network.to(device), seeds, optimizer, [hyperparameters_of(one) for one in trainings], shared.dropout
    )
    if not say_unserved(members, shared.objective.name):
        members.engine = Captured(make_draw(shared))
    return members


def hyperparameters_of(training: Training) -> Hyperparameters:
    t = training
    schedule = components.bound("schedule", t.schedule) if t.epochs else constant
    return Hyperparameters(t.lr, t.weight_decay, t.clip, t.stop_loss, schedule)


def products(training: Training, device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which matrix products have the precision of this training."""
    return matrix_products(training.precision, device)


def course(training: Training) -> Course:
    return Course(training.epochs, training.batch, training.shuffle)


def objective(training: Training) -> Objective:
    found: Objective = components.bound("objective", training.objective)
    return found


def make_draw(training: Training) -> Callable[[Samples], Samples]:
    """Return a function that draws for a batch what the objective would draw. The objective then draws nothing itself."""
    found = components.load("objective", training.objective.name)
    draw = getattr(sys.modules[found.__module__], f"draw_{found.__name__}", None)
    if draw is None:
        return lambda batch: batch
    options = inspect.signature(draw).parameters
    return functools.partial(draw, **{k: v for k, v in training.objective.options.items() if k in options})
