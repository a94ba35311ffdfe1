"""What the two processes reach at best, and what share of it a training step uses."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from benchmarks.gpu.limits import Work, work_of
from benchmarks.networks import Name, stack
from benchmarks.workers import Variant, Workers

WIDTH, COPIED = 512, 2**26  # of the matrices; bytes, more than a cache holds


def product(width: int) -> Callable[[], object]:
    a, b = torch.randn(2, width, width)
    return lambda: a @ b


def copy(size: int) -> Callable[[], object]:
    source = torch.ones(size, dtype=torch.uint8)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


@dataclass(frozen=True)
class Limits:
    arithmetic: float  # operations a second, of large matrix products
    copied: float  # bytes a second, read and written

    @staticmethod
    def measured(workers: Workers, tiny: bool) -> "Limits":
        width, size = (64, 2**16) if tiny else (WIDTH, COPIED)
        variants = {
            "product": Variant("limits:product", (width,), 2 * width**3),
            "copy": Variant("limits:copy", (size,), 2 * size),
        }
        found = workers.rates(variants, rounds=1 if tiny else 5, seconds=0.02 if tiny else 0.3)
        return Limits(found["product"], found["copy"])

    def shares(self, work: Work, rate: float) -> dict[str, float]:
        """Of so many member-steps a second."""
        return {
            "of_arithmetic": rate * work.operations / self.arithmetic,
            "of_copy": rate * work.unfused / self.copied,
        }


def work(name: Name) -> Work:
    """Of one step of one member, without dropout."""
    members, batch, objective = stack(name, 1, 0.0)
    return work_of(lambda: members.step(objective, batch), members)
