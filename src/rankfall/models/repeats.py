"""Products of what is the same for every sample, computed for one of them.

XLNet maps its table of relative positions, expanded over the batch, in every layer: of 32 samples 31 copies, a third of what its
attention's maps cost. (In float64 it copies the table first, and nothing is saved.)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.models.forward import in_float64


def once(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As `in_float64`; but along an axis on which an operand of an einsum is a single value expanded, and which no other operand has, the
    result is computed once and repeated."""
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
    """(operand, axis, letter) of such axes: `ibh,hnd->ibnd` with one value of the first along b."""
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
