"""Normalisers, objectives and optimisers as a user writes them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Dropout, no_dropout
from rankfall.random_streams import stream
from rankfall.train.objectives._base import Graded, Samples
from rankfall.train.objectives.classes import classes


def noisy(logits: Tensor) -> Tensor:
    """A normaliser that draws."""
    return (logits + torch.rand_like(logits)).softmax(-1)


def by_value(logits: Tensor) -> Tensor:
    """A normaliser that decides by a number of the data."""
    return logits.softmax(-1) if float(logits.max()) > 0 else logits.sigmoid()


def drawn(module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded:
    """An objective that draws in Python, by the place of the batch."""
    graded = classes(module, batch, drop)
    return Graded(graded.loss * stream(0, "drawn", *batch.place).random(), graded.asked)


def weighted(module: nn.Module, batch: Samples, drop: Dropout = no_dropout, *, least: float = 0.5) -> Graded:
    """Classes, of scores times numbers that are drawn for each step and member: one for each token, and one for all."""
    batch = draw_weighted(batch, least=least)
    assert batch.drawn is not None
    of_tokens, of_member = batch.drawn

    def scores(*given: Any) -> Tensor:
        scores: Tensor = module(*given)
        return scores * of_tokens.to(scores.dtype).unsqueeze(-1) * of_member.to(scores.dtype).view(-1, 1, 1, 1)

    return classes(scores, batch, drop)  # type: ignore[arg-type]


def draw_weighted(batch: Samples, *, least: float = 0.5) -> Samples:
    if batch.drawn is not None:
        return batch
    streams = [stream(seed, "weights", *batch.place) for seed in batch.seeds]
    of_tokens = np.array([rng.uniform(least, 1, tuple(batch.inputs.shape[1:3])) for rng in streams])
    of_member = np.array([rng.uniform(1, 2) for rng in streams])
    return replace(batch, drawn=tuple(torch.tensor(x).to(torch.get_default_dtype()) for x in (of_tokens, of_member)))


class Trusting:
    """A step as long as the weights are, of three slots, whose form and numbers change with the step."""

    slots = 3

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        first, second, slow = slots
        first.mul_(0.9).add_(grads, alpha=0.1)
        second.copy_(torch.maximum(second * (1 - t**-0.8), grads.square()))
        step = first.div(1 - 0.9**t).div_(second.sqrt().add_(1e-6))
        norms = weights.square().sum(1, keepdim=True).sqrt(), step.square().sum(1, keepdim=True).sqrt()
        weights.addcmul_(step, lr * norms[0] / norms[1].clamp_min(1e-6), value=-1)
        if t % 3 == 0:
            slow.add_(weights.sub(slow), alpha=0.5)
            weights.copy_(slow)


class Halved:
    """Changes a part of the weights: no operation on whole rows."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights[:, ::2].sub_(lr * grads[:, ::2])


class Deciding:
    """Decides by a number of the data."""

    slots = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        weights.sub_(lr * grads * (2.0 if float(grads.max()) > 0 else 1.0))


class Counting:
    """Keeps a number between steps, which no optimiser may."""

    slots = 0

    def __init__(self) -> None:
        self.count = 0

    def step(self, weights, grads, slots, lr, decay, t, scratch) -> None:  # type: ignore[no-untyped-def]
        self.count += 1
        weights.sub_(lr * grads * self.count)
