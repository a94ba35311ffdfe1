"""In-place changes of a part of a tensor, such as `x[..., 1:] = y` or `x[:, 0] += y`, as operations that return the whole tensor.

Autograd tracks such a change by the memory that two tensors share. A trace has no memory, so the changed tensor is assembled from its parts
and replaced as a whole.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from thousandfold.graph import Untraceable, replace_in

Place = tuple[int | slice, ...]  # index of each dimension


class WritesWholes(TorchFunctionMode):
    """Track the parts that a function has taken by indexing. Other tensors with shared memory, such as results of `view` or `transpose`,
    are not tracked. If one is changed and gradients pass through it, the trace has no operation for it and refuses the network."""

    def __init__(self) -> None:
        super().__init__()
        # id of a part -> the part, its tensor, its index, and whether gradients were enabled when it was taken
        self.parts: dict[int, tuple[Tensor, Tensor, Place, bool]] = {}
        self.old: set[int] = set()  # ids of parts whose tensor was replaced since

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        if func is Tensor.__setitem__:
            return self.set(*args)
        if func is Tensor.__getitem__:
            return self.get(*args)
        given, named = (
            replace_in((args, dict(kwargs or {})), Tensor, self.current) if self.old else (args, kwargs or {})
        )
        if not args or not changes(func):  # keyword arguments, as in `nn.init`, are not tracked as parts
            return func(*given, **named)
        if lays_anew(func.__name__):
            self.leave(args[0])
            return func(*args, **(kwargs or {}))
        self.check_apart(self.lies(args[0]), (args[1:], dict(kwargs or {})))
        if id(args[0]) in self.parts:
            self.replace(args[0], func(given[0].clone(), *given[1:], **named))
        else:
            func(*given, **named)
            self.forget(args[0])
        return args[0]

    def current(self, x: Tensor) -> Tensor:
        """Return the current value of a part whose tensor may have been replaced since."""
        if id(x) not in self.old:
            return x
        _, of, place, _ = self.parts[id(x)]
        return self.current(of)[place]

    def get(self, x: Tensor, index: Any) -> Tensor:
        part, place = self.current(x)[replace_in(index, Tensor, self.current)], place_of(x, index)
        if place is not None:
            self.parts[id(part)] = part, x, place, torch.is_grad_enabled()
        return part

    def set(self, x: Tensor, index: Any, y: Any) -> None:
        place = place_of(x, index)
        _, of, there, graded = self.parts.get(id(y), (None, None, None, None))
        if of is x and (there, graded) == (place, torch.is_grad_enabled()):
            return  # x[0] += 1 changes the part, and then assigns it
        if place is not None:
            self.check_apart(self.lies(x, place), y)
        now, index, y = replace_in((x, index, y), Tensor, self.current)
        if place is not None:
            self.replace(x, put(now, place, torch.as_tensor(y, dtype=x.dtype), 0))
        elif isinstance(index, Tensor) and index.dtype == torch.bool and not (isinstance(y, Tensor) and y.dim()):
            self.replace(x, now.masked_fill(index.reshape(index.shape + (1,) * (x.dim() - index.dim())), y))
        else:
            whole = now.clone()
            whole[index] = y
            self.replace(x, whole)

    def replace(self, x: Tensor, whole: Tensor) -> None:
        if id(x) in self.parts:
            _, of, place, _ = self.parts[id(x)]
            self.replace(of, put(self.current(of), place, whole, 0))
        else:
            x.copy_(whole)
            self.forget(x)

    def forget(self, x: Tensor) -> None:
        """Mark all parts of x as old."""
        for name, (part, of, *_) in self.parts.items():
            if of is x and name not in self.old:
                self.old.add(name)
                self.forget(part)

    def check_apart(self, where: tuple[Tensor, list[range]], given: Any) -> None:
        """Raise if a change reads memory that overlaps its target: PyTorch may read values there before or after they change."""
        of, at = where

        def check(y: Tensor) -> Tensor:
            of_other, other = self.lies(y)
            shares = of_other is not of and memory_of(of_other) == memory_of(of)  # through a view or `detach`
            if shares or (of_other is of and other != at and not any(set(a).isdisjoint(b) for a, b in zip(at, other))):
                raise Untraceable("a part of a tensor is changed by one that it overlaps, or may; take its `clone()`")
            return y

        replace_in(given, Tensor, check)

    def lies(self, x: Tensor, *chain: Place) -> tuple[Tensor, list[range]]:
        """Return the tensor of a part and the indices of its numbers in each dimension. `chain`: indices of a part of x."""
        while id(x) in self.parts:
            _, x, place, _ = self.parts[id(x)]
            chain = (*chain, place)
        at: list[range | int] = [range(size) for size in x.shape]
        for place in reversed(chain):
            rest = iter(place)
            at = [one if isinstance(one, int) else one[next(rest)] for one in at]
        return x, [range(one, one + 1) if isinstance(one, int) else one for one in at]

    def leave(self, x: Tensor) -> None:
        """Stop tracking x and its parts, because the index of a part in x is no longer known."""
        for name, (part, of, *_) in list(self.parts.items()):
            if part is x or of is x:
                del self.parts[name]
                self.old.discard(name)


def memory_of(x: Tensor) -> int:
    """Return an identifier of a tensor's memory, equal for tensors that share it."""
    functions = torch._C._functorch
    while functions.is_functorch_wrapped_tensor(x) and not functions.is_functionaltensor(x):
        x = functions.get_unwrapped(x)
    return x.untyped_storage()._cdata


def changes(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return (name.endswith("_") and not name.endswith("__")) or name in IN_PLACE


IN_PLACE = {
    f"__i{name}__" for name in ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
}


@cache
def lays_anew(name: str) -> bool:
    """Return whether a function changes the form or history of a tensor but not its values, such as `transpose_` and `detach_`."""
    function = getattr(torch.ops.aten, name, None)
    return function is not None and torch.Tag.inplace_view in getattr(function, function.overloads()[0]).tags


def place_of(x: Tensor, index: Any) -> Place | None:
    """Return an index as a tuple with an entry for each dimension, or None if it has others than integers and slices."""
    given = index if isinstance(index, tuple) else (index,)
    if not all(type(one) in (int, slice) or one is Ellipsis for one in given) or given.count(Ellipsis) > 1:
        return None
    at = given.index(Ellipsis) if Ellipsis in given else len(given)
    all_of = (slice(None),) * (x.dim() - len(given) + given.count(Ellipsis))
    return (*given[:at], *all_of, *given[at + 1 :])


def put(x: Tensor, place: Place, y: Tensor, dim: int) -> Tensor:
    """Return x with y written at an index. `place` is the index of the dimensions from `dim` on."""
    if not place:
        return y.reshape(y.shape[max(0, y.dim() - x.dim()) :]).expand(x.shape)
    first, *rest = place
    if isinstance(first, int):
        one = put(x.select(dim, first), tuple(rest), y, dim).unsqueeze(dim)
        at = first % x.shape[dim]
        return x.slice_scatter(one, dim, at, at + 1)  # torch.func.vmap loses a part of the gradient of select_scatter
    if first == slice(None):
        return put(x, tuple(rest), y, dim + 1)
    start, stop, step = first.indices(x.shape[dim])
    part = x[(slice(None),) * dim + (first,)]
    return x.slice_scatter(put(part, tuple(rest), y, dim + 1), dim, start, stop, step)
