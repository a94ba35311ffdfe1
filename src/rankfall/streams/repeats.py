"""Products whose operand is the same for every sample, computed once.

In every layer XLNet maps its table of relative positions, expanded over the batch. With 32 samples 31 of the results are copies, a
third of the cost of its attention's maps. (In float64 it copies the table first, so this saves nothing.)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.streams.forward import in_float64


def once(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `func` as `in_float64` does, but compute an einsum once along an axis on which one operand is an expanded single value.

    No other operand may have the axis. The result is repeated along it.
    """
    axes = _repeated_axes(args) if func is torch.einsum and not kwargs else []
    if not axes:
        return in_float64(func, args, kwargs)
    operands, sizes = list(args[1:]), {}
    for operand, axis, letter in axes:
        sizes[letter] = operands[operand].shape[axis]
        operands[operand] = operands[operand].narrow(axis, 0, 1)
    found = in_float64(func, (args[0], *operands), kwargs)
    letters = args[0].partition("->")[2].strip()
    shape = [sizes.get(letter, size) for letter, size in zip(letters, found.shape, strict=True)]
    return found.expand(shape).contiguous()


def _repeated_axes(args: tuple[Any, ...]) -> list[tuple[int, int, str]]:
    """Return (operand, axis, letter) of such axes, as b in `ibh,hnd->ibnd` if the first operand has one value along b."""
    if not args or not isinstance(args[0], str) or "->" not in args[0] or "." in args[0]:
        return []
    given, _, result = args[0].replace(" ", "").partition("->")
    terms, operands = given.split(","), args[1:]
    if len(terms) != len(operands) or not all(isinstance(operand, Tensor) for operand in operands):
        return []
    return [
        (number, axis, letter)
        for number, (term, operand) in enumerate(zip(terms, operands))
        for axis, letter in enumerate(term)
        if operand.stride(axis) == 0 and operand.shape[axis] > 1 and given.count(letter) == 1 and letter in result
    ]
