"""Evaluation in parts, and the result on all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rankfall.train.objectives._base import Graded, Samples

EVALUATED = 32  # largest number of samples of a part; more do not fit the processor's cache


def parts_of(batch: Samples) -> list[Samples]:
    """Split a batch into parts of at most EVALUATED samples.

    The parts have equal sizes if this does not make them much smaller, since each size needs a program.
    """
    count = batch.inputs.shape[1]
    size = next((n for n in range(min(count, EVALUATED), EVALUATED // 2, -1) if count % n == 0), EVALUATED)
    inputs = batch.inputs.split(size, 1)
    targets = inputs if batch.targets is batch.inputs else batch.targets.split(size, 1)
    parts = [replace(batch, inputs=x, targets=y) for x, y in zip(inputs, targets)]
    if not batch.drawn:
        return parts
    return [replace(part, drawn=drawn) for part, drawn in zip(parts, zip(*(x.split(size, 1) for x in batch.drawn)))]


def comes_apart(batch: Samples) -> bool:
    """Return whether all tensors drawn for a batch have its axis of samples, so that they can be split."""
    return all(x.dim() > 1 and x.shape[1] == batch.inputs.shape[1] for x in batch.drawn or ())


def add_up(parts: Sequence[Graded]) -> Graded:
    """Return the result on the targets of all parts."""
    if len(parts) == 1:
        return parts[0]
    asked = sum_of(part.asked for part in parts)
    loss = sum_of((part.loss.double() * part.asked).masked_fill(part.asked == 0, 0.0) for part in parts) / asked
    sums, asked_of = (
        {name: sum_of(getattr(part, kind)[name] for part in parts) for name in getattr(parts[0], kind)}
        for kind in ("sums", "asked_of")
    )
    return Graded(loss.to(parts[0].loss.dtype), asked, sums, asked_of)


def sum_of(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(values)).sum(0)
