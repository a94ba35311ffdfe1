"""The edits of a pass over one residual stream, and the variants that share a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.streams.flow import Branch, BranchPart
from rankfall.streams.forward import in_float64
from rankfall.streams.frames import Operation

Edit = Callable[[Branch, Tensor, Tensor], Tensor | None]


@dataclass
class Edits:
    """The edits of a pass; all are optional.

    A batch may hold several variants of the same samples, one after the other. `drop` and `drop_parts` have a flag for each.
    """

    edit: Edit | None = None
    enter: Callable[[Tensor], Tensor] | None = None  # replaces the tensor that the stream begins with
    # whether to leave out a branch, with a norm that follows it in its layer
    drop: Callable[[Branch], Sequence[bool]] | None = None
    drop_parts: Sequence[bool] = ()  # whether to leave out the parts of branches that mix no tokens
    axis: int = 0  # of the samples, in a state of three axes
    unused: frozenset[Operation] = frozenset()  # products whose results are not used
    identity: frozenset[str] = frozenset()  # last names of linear modules that return their input
    compute: Callable[..., Any] = in_float64
    sink: Callable[[int, Tensor], None] | None = None  # receives (layer, state), and no state is kept
    join: Callable[[BranchPart, Tensor, Tensor], None] | None = None  # sees the parts of a branch
    attend: Callable[[int, Any, tuple[Any, ...], dict[str, Any]], Any] | None = None  # may compute attention itself
    score: Callable[[int, list[Tensor]], None] | None = None  # sees queries and keys
    partial: bool = False  # the pass ends with the last branch
    copies: bool = False  # x += f makes a new tensor, so that the old one can be differentiated


class Enough(Exception):
    """The signal that ends a pass after its last branch, or where it enters the stream.

    What follows the last branch may depend on the state in other ways, as a number of frames.
    """


def mix_variants(total: Tensor, replacement: Tensor, flags: Sequence[bool], axis: int) -> Tensor:
    """Return `total`, with `replacement` for the variants of the batch whose flag is set."""
    if all(flags):
        return replacement
    mixed, axis = total.clone(), axis if total.dim() == 3 else 0
    size = total.shape[axis] // len(flags)
    for number, flag in enumerate(flags):
        if flag:
            mixed.narrow(axis, number * size, size).copy_(replacement.narrow(axis, number * size, size))
    return mixed


def alike_rows(state: Tensor, output: Tensor) -> bool:
    """Return whether two tensors have the same shape, or the same rows with fewer axes in one of them."""
    rows = state.dim() != output.dim() and state.numel() == output.numel() and state.shape[-1] == output.shape[-1]
    return state.shape == output.shape or rows


def zero_product(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return zeros in the shape of a product whose result is not used."""
    if func is torch.addmm:
        return args[1].new_zeros(args[1].shape[0], args[2].shape[1])
    value = args[0] if args else kwargs["input"]
    weight = args[1] if len(args) > 1 else kwargs["weight"]
    return value.new_zeros(*value.shape[:-1], weight.shape[0])
