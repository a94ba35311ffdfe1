"""Train by Adam with a learning rate that falls linearly to zero."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor


def descend(parameters: Iterable[Tensor], loss: Callable[[int], Tensor], steps: int, rate: float) -> Iterator[int]:
    """Take steps down the gradient of `loss(step)`. Yield the number of steps taken, 0 first, so that the caller can measure between
    steps."""
    optimiser = torch.optim.Adam(parameters, lr=rate)
    yield 0
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - step / steps)
        optimiser.zero_grad()
        with torch.enable_grad():
            loss(step).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        yield step + 1
