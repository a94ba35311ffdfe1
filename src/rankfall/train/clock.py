"""The time of the optimiser steps alone, without data sets, evaluations, checkpoints and writing."""

import statistics
import time
from collections.abc import Callable

import torch

# The fewest steps that are timed: with fewer, the preparations of the first step or one interruption would dominate.
FEWEST = 20


class StepClock:
    """A clock of the seconds per step of all members, epoch by epoch. On a GPU an epoch ends with its last kernel. Other work between its
    steps is not separated there, since reading the clock would make the GPU wait."""

    def __init__(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.epochs: list[float] = []  # seconds per step
        self.steps = 0
        self.began = self.away = 0.0

    def begin(self) -> None:
        self.away, self.began = 0.0, self.now()

    def leave_out(self, work: Callable[[], None]) -> None:
        """Run work that is not part of a step."""
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
        """The median over the epochs of this job, so that preparations of the first steps do not count. None for too few steps."""
        return statistics.median(self.epochs) if self.steps >= FEWEST else None
