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
    """The optimiser of untrained networks, whose keys contain no optimiser. It takes no steps."""

    slots = 0

    def step(self, *_: object) -> None:
        raise AssertionError("a step of untrained networks")


def initial(
    architecture: Architecture, shape: Shape, seeds: Sequence[int], trainings: Sequence[Training], device: torch.device
) -> Members:
    """Return networks at their initial values, one per seed. Trainings may differ in hyperparameters, which are set by member."""
    shared = trainings[0]
    network = build(architecture, shape, len(seeds), getattr(torch, shared.dtype))
    network.initialise(list(seeds))
    optimizer = components.bound("optimizer", shared.optimizer) if shared.epochs else Untrained()
    members = Members(
        network.to(device), seeds, optimizer, [hyperparameters_of(training) for training in trainings], shared.dropout
    )
    if not say_unserved(members, shared.objective.name):
        members.engine = Captured(make_draw(shared))
    return members


def hyperparameters_of(training: Training) -> Hyperparameters:
    """Return the hyperparameters of a member. Without epochs no schedule is needed."""
    t = training
    schedule = components.bound("schedule", t.schedule) if t.epochs else constant
    return Hyperparameters(t.lr, t.weight_decay, t.clip, t.stop_loss, schedule)


def products(training: Training, device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which matrix products have the precision of this training."""
    return matrix_products(training.precision, device)


def course(training: Training) -> Course:
    return Course(training.epochs, training.batch, training.shuffle)


def objective(training: Training) -> Objective:
    return components.bound("objective", training.objective)


def make_draw(training: Training) -> Callable[[Samples], Samples]:
    """Return a function that draws for a batch what the objective would draw, so that the objective itself draws nothing."""
    function = components.load("objective", training.objective.name)
    draw = getattr(sys.modules[function.__module__], f"draw_{function.__name__}", None)
    if draw is None:
        return lambda batch: batch
    options = inspect.signature(draw).parameters
    return functools.partial(draw, **{k: v for k, v in training.objective.options.items() if k in options})
