"""Users' functions, called with copies of float64 states. The first call checks that a function is deterministic and computes in float64.

If it requests float32 inside (`x.float()`, `softmax(dtype=torch.float32)`), float64 is kept instead and a note says so, because exponents
of float32 rounding would look like a law. A cast that cannot be avoided raises an error.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rankfall.api.functions import copy_function, name
from rankfall.errors import RankfallError
from rankfall.streams.forward import Wide

KEPT = "asks for float32 inside; float64 was kept instead"


class Steady:
    """A function that works on copies of its modules. Its first call checks that results repeat, also after other inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.asked, self.__name__, self.note = copy_function(function), False, name(function), ""
        self.within: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __call__(self, *given: Tensor) -> Any:
        if not self.asked:
            self.asked = True
            self.trial(given)
        return self.answer(self.function, given)

    def answer(self, function: Callable[..., Any], given: tuple[Tensor, ...]) -> Any:
        with self.within():
            return function(*(one.clone(memory_format=torch.contiguous_format) for one in given))

    def trial(self, given: tuple[Tensor, ...]) -> None:
        fresh = copy.deepcopy(self.function) if isinstance(self.function, nn.Module) else self.function
        cast = self.casts(given)
        if cast:
            self.within, self.note = Wide, f"{self.__name__} {KEPT}"
            try:
                wide = self.casts(given)
            except RuntimeError:  # its own float32 numbers meet float64
                wide = cast
            if wide:
                raise RankfallError(self.refusal(wide))
        others = tuple(one.flip(-1) / 3 for one in given)  # not representable in float32
        first, elsewhere = self.answer(self.function, given), self.answer(self.function, others)
        again = self.answer(self.function, given)
        kept = isinstance(first, Tensor) and first is elsewhere  # the same object for any input
        if kept or not (same(first, again) and same(elsewhere, self.answer(fresh, others))):
            raise RankfallError(
                f"{self.__name__} gives two answers for the same input: is it in training mode, with dropout (module.eval()), "
                "or does it keep state between calls?"
            )
        if is_rounded(elsewhere):
            raise RankfallError(self.refusal("float32"))

    def refusal(self, cast: str) -> str:
        return (
            f"{self.__name__} casts its input from float64 to {cast} inside, so small residuals would be rounding: compute in the type of "
            "the input"
        )

    def casts(self, given: tuple[Tensor, ...]) -> str:
        """Return the narrower format to which the function casts states, or an empty string."""
        clones = tuple(one.clone(memory_format=torch.contiguous_format) for one in given)
        with self.within(), Casts(clones) as watched:
            self.function(*clones)
        return watched.found


class Casts(TorchDispatchMode):
    """A dispatch mode that detects operations which cast float64 numbers that depend on the input to a narrower format."""

    def __init__(self, given: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.depends = {id(one): weakref.ref(one) for one in given}
        self.found = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        read = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor) and self.follows(one)]
        made = [one for one in tree_leaves(output) if isinstance(one, Tensor)] if read else []
        for one in made:
            self.depends[id(one)] = weakref.ref(one)
            narrow = one.is_floating_point() and one.dtype.itemsize < torch.float64.itemsize
            if narrow and any(source.dtype == torch.float64 for source in read):
                self.found = self.found or str(one.dtype).removeprefix("torch.")
        return output

    def follows(self, one: Tensor) -> bool:
        known = self.depends.get(id(one))
        return known is not None and known() is one


def is_rounded(output: Any) -> bool:
    """Return whether float64 numbers have only the digits of float32, as when they were computed outside of torch, for example in NumPy."""
    output = output[0] if isinstance(output, tuple) and output else output
    if not isinstance(output, Tensor) or output.dtype != torch.float64 or not output.numel():
        return False
    fewer = (output == output.bfloat16().double()).double().mean()
    return bool((output == output.float().double()).all()) and bool(fewer < 0.5)


def same(one: Any, other: Any) -> bool:
    """Return whether two outputs are equal except for rounding. Outputs other than tensors count as equal; `call` rejects them."""
    one, other = (output[0] if isinstance(output, tuple) and output else output for output in (one, other))
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
        return True
    if one.shape != other.shape or not one.numel():
        return one.shape == other.shape
    size = float(one.abs().nan_to_num().max())
    return torch.allclose(one, other, rtol=0.0, atol=1e-9 * size, equal_nan=True)
