"""The time that optimiser steps take by themselves: without data sets, evaluations, checkpoints and what is written."""

import statistics
import time
from collections.abc import Callable

import torch

# Steps that say how long one takes: what the first prepare, and one interruption, is most of the time of a few.
FEWEST = 20


class StepClock:
    """Seconds of a step of all members, epoch by epoch. On a GPU an epoch has ended when its last kernel has; what is done between its
    steps meanwhile is not told apart, since asking would make it wait."""

    def __init__(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.epochs: list[float] = []  # seconds a step
        self.steps = 0
        self.began = self.away = 0.0

    def begin(self) -> None:
        self.away, self.began = 0.0, self.now()

    def leave_out(self, work: Callable[[], None]) -> None:
        """Runs what is no step."""
        left = time.monotonic()
        work()
        if self.device.type != "cuda":
            self.away += time.monotonic() - left

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
        """The median of the epochs of this job, so that what the first steps prepare does not count; None of too few steps."""
        return statistics.median(self.epochs) if self.steps >= FEWEST else None
