"""The arguments and the result of an objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor, nn

from rankfall.nets.primitives import Dropout, no_dropout


@dataclass(frozen=True)
class Samples:
    """Samples of each member. What an objective draws at random depends on the member's seed and the position of the batch."""

    inputs: Tensor  # (K, B, T) of symbols or (K, B, T, C) of vectors
    targets: Tensor
    seeds: Sequence[int]
    place: tuple[str | int, ...]  # such as ("train", step), or a split's name and its first sample
    size_in: int = 0  # symbols
    special: int = 0  # number of symbols that are no words; the last of them hides a word
    constant: int | None = None  # the class that is the answer at some places for any input
    learned: bool = False  # whether a step is taken on them; otherwise they are evaluated
    drawn: tuple[Tensor, ...] | None = None  # the objective's random draws, each (K, ...); None: not yet drawn


@dataclass(frozen=True)
class Graded:
    """The result on a batch: the mean loss over its targets, their number, and sums of other metrics over all targets or a part of them."""

    loss: Tensor  # (K,), with its graph
    asked: Tensor  # (K,) of integers
    sums: Mapping[str, Tensor] = field(default_factory=dict)  # metric -> (K,)
    # metric -> (K,) targets, for metrics over a part of the targets
    asked_of: Mapping[str, Tensor] = field(default_factory=dict)


class Objective(Protocol):
    """The interface of objectives. Options are keyword-only. Without `drop` the batch is evaluated without dropout.

    An objective NAME that draws at random has a function `draw_NAME(batch, *, ...)` in its module, with options of the same names. It
    returns the batch as the network sees it, with whatever else the loss needs in `drawn`. The objective calls it if `drawn` is None.
    """

    def __call__(self, module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded: ...


def outputs(module: nn.Module, inputs: Tensor, drop: Dropout) -> Tensor:
    """Return the module's outputs. `drop` is passed only in training with dropout."""
    return module(inputs) if drop is no_dropout else module(inputs, drop)
