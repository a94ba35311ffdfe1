"""The arguments and the result of an objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor, nn

from rankfall.nets.dropout import Dropout, no_dropout


@dataclass(frozen=True)
class Samples:
    """Samples for each member. What an objective draws at random depends on the member's seed and the position of the batch."""

    inputs: Tensor  # (K, B, T) of symbols or (K, B, T, C) of vectors
    targets: Tensor
    seeds: Sequence[int]
    place: tuple[str | int, ...]  # such as ("train", step), or a split's name and its first sample
    size_in: int = 0  # symbols
    special: int = 0  # the first so many symbols stand for no word; the last of them is what hides one
    constant: int | None = None  # the class that is the answer at some places whatever the input is
    learned: bool = False  # whether a step is taken on them; otherwise they are evaluated
    drawn: tuple[Tensor, ...] | None = None  # what the objective has drawn for them, each (K, ...); None: nothing yet


@dataclass(frozen=True)
class Graded:
    """The result on a batch: the mean loss over its targets, their number, and sums of other metrics over them, or over a part of them."""

    loss: Tensor  # (K,), with its graph
    asked: Tensor  # (K,) of integers
    sums: Mapping[str, Tensor] = field(default_factory=dict)  # metric -> (K,)
    # metric -> (K,) targets, of metrics that count a part of them
    asked_of: Mapping[str, Tensor] = field(default_factory=dict)


class Objective(Protocol):
    """Options are keyword-only. Without `drop` nothing is dropped: the batch is evaluated.

    What an objective NAME draws stands in a function `draw_NAME(batch, *, ...)` beside it, with options of the same names: it gives the
    batch as the network is to see it, and in `drawn` what else the loss needs. The objective calls it where `drawn` is None.
    """

    def __call__(self, module: nn.Module, batch: Samples, drop: Dropout = no_dropout) -> Graded: ...


def outputs(module: nn.Module, inputs: Tensor, drop: Dropout) -> Tensor:
    """The module's outputs; `drop` is passed only in training with dropout."""
    found: Tensor = module(inputs) if drop is no_dropout else module(inputs, drop)
    return found
