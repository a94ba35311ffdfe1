"""An optimiser's step as a list of operations on the rows of one member, whatever the optimiser is made of.

It is run with tensors that have a shape and no numbers, and every operation is noted. An operation that changes a tensor in place becomes
one that gives a new one. Numbers of Python, such as learning rates' corrections that depend on the step, are noted apart: between two steps
of the same operations they alone differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from rankfall.train.machine.decompositions import decompositions
from rankfall.train.machine.program.calls import LOWERINGS
from rankfall.train.machine.recorder import Untraceable
from rankfall.train.members import Optimizer

NUMBERS = (
    "number",
    "Optional[number]",
    "Tensor",
    "Optional[Tensor]",
    "float",
    "Optional[float]",
)  # arguments that are no size or axis


RESULTS: dict[Any, tuple[torch.Size, torch.dtype]] = {}  # of operations on tensors of some shapes and formats


@dataclass(frozen=True)
class OfTensor:
    number: int


@dataclass(frozen=True)
class OfNumber:
    place: int


@dataclass(frozen=True)
class OptimizerOperation:
    target: Any
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Recorded:
    """Tensors are counted from those that are given on; each operation gives one."""

    operations: tuple[OptimizerOperation, ...]
    results: tuple[int, ...]  # which tensor each given one is in the end


def record(
    optimizer: Optimizer, weights: int, decays: bool, dtype: torch.dtype, t: int
) -> tuple[Recorded, list[float]]:
    """Step t on rows (1, P); given are weights, gradient, slots, learning rate, scratch, and decay if there is one."""
    row, one = ((lambda n=n: torch.empty(1, n, dtype=dtype, device="meta")) for n in (weights, 1))
    w, grads, slots, lr, scratch = row(), row(), tuple(row() for _ in range(optimizer.slots)), one(), row()
    decay = one() if decays else None
    given = [w, grads, *slots, lr, scratch, *([] if decay is None else [decay])]
    recorder = OptimizerRecorder(given)
    try:
        with recorder, torch.no_grad():
            optimizer.step(w, grads, slots, lr, decay, t, scratch)
    except Untraceable:
        raise
    except Exception as error:
        raise Untraceable(f"the optimiser: {type(error).__name__}: {error}") from error
    return Recorded(tuple(recorder.operations), tuple(recorder.now[id(x)] for x in given)), recorder.numbers


class OptimizerRecorder(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled; else torch imports its compiler at the first operation, which takes most of a second."""
        return False

    def __init__(self, given: Sequence[Tensor]) -> None:
        super().__init__()
        self.held = list(given)  # so that none is freed and another takes its name
        self.now = {id(x): i for i, x in enumerate(given)}
        self.first = len(given)
        self.operations: list[OptimizerOperation] = []
        self.numbers: list[float] = []
        self.shared: set[int] = set()  # those that are parts of others, or have parts

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        target, changed = new_one(func, args, kwargs)
        kwargs.pop("out", None)
        if name_of(func) == "copy_" and args[0].shape == args[1].shape:
            found = args[1]
        elif name_of(target) in LOWERINGS:
            found = self.note(target, args, kwargs)
        else:
            found = self.by_others(target, args, kwargs)
        if changed is None:
            return found
        if id(changed) in self.shared or changed.shape != found.shape or changed.dtype != found.dtype:
            raise Untraceable(f"the optimiser changes a part of a tensor ({func})")
        self.now[id(changed)] = self.now[id(found)]
        self.held.append(found)
        return changed

    def by_others(self, target: Any, args: Any, kwargs: Any) -> Any:
        made = decompositions().get(target)
        if made is None:
            raise Untraceable(f"the optimiser's operation {target}")
        with self:
            return made(*args, **kwargs)

    def note(self, target: Any, args: Any, kwargs: Any) -> Tensor:
        numbers, aliases = about(target)
        noted = tuple(self.note_value(x, name in numbers) for x, name in zip(args, arguments(target)))
        others = tuple((name, self.note_value(x, name in numbers)) for name, x in kwargs.items())
        shapes = tuple(shape_of(x) for x in (*args, *kwargs.values()))
        ident = target, noted, others, shapes
        if ident not in RESULTS:  # what it gives has always the same shape
            found = target(*map(of_zeros, args), **{name: of_zeros(x) for name, x in kwargs.items()})
            if not isinstance(found, Tensor):
                raise Untraceable(f"the optimiser's operation {target}, which gives no tensor")
            RESULTS[ident] = found.shape, found.dtype
        value = torch.empty(RESULTS[ident][0], dtype=RESULTS[ident][1], device="meta")
        if aliases:
            self.shared |= {id(args[0]), id(value)}
        self.held.append(value)
        self.now[id(value)] = self.first + len(self.operations)
        self.operations.append(OptimizerOperation(target, noted, others, tuple(value.shape), value.dtype))
        return value

    def note_value(self, x: Any, is_number: bool) -> Any:
        if isinstance(x, Tensor) and id(x) in self.now:
            return OfTensor(self.now[id(x)])
        if isinstance(x, Tensor) and x.device.type == "cpu" and x.numel() == 1:
            x = x.item()
        elif isinstance(x, Tensor):
            raise Untraceable("a tensor that the optimiser holds")
        if is_number and isinstance(x, (int, float)) and not isinstance(x, bool):
            self.numbers.append(float(x))
            return OfNumber(len(self.numbers) - 1)
        return tuple(self.note_value(one, False) for one in x) if isinstance(x, (list, tuple)) else x


def shape_of(x: Any) -> Any:
    """Of a tensor, or of those in a list, what the shape of a result may depend on."""
    if isinstance(x, (list, tuple)):
        return tuple(shape_of(one) for one in x)
    return (x.shape, x.dtype) if isinstance(x, Tensor) else None


def of_zeros(x: Any) -> Any:
    """A tensor, or those in a list, with numbers: PyTorch computes with such tensors at once. For those without it would first import its
    compiler."""
    if isinstance(x, (list, tuple)):
        return [of_zeros(one) for one in x]
    return torch.zeros(x.shape, dtype=x.dtype) if isinstance(x, Tensor) and x.is_meta else x


def new_one(func: Any, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Tensor | None]:
    """The operation that gives a new tensor, and which tensor it is to replace."""
    if "out" in kwargs:
        return like(func, name_of(func)), kwargs["out"]
    if name_of(func).endswith("_") and func._schema.is_mutable:
        return like(func, name_of(func)[:-1]), args[0]
    return func, None


@cache
def like(func: Any, name: str) -> Any:
    """The operation of this name with the arguments that `func` has, but for where it writes."""
    wanted = [str(one.type) for one in func._schema.arguments if not one.is_out]
    packet = getattr(torch.ops.aten, name, None)
    for overload in packet.overloads() if packet is not None else ():
        found = getattr(packet, overload)
        if not found._schema.is_mutable and [str(one.type) for one in found._schema.arguments] == wanted:
            return found
    return func


@cache
def arguments(target: Any) -> tuple[str, ...]:
    return tuple(one.name for one in target._schema.arguments)


@cache
def about(target: Any) -> tuple[frozenset[str], bool]:
    """Its arguments that may be numbers of Python, and whether what it gives shares memory with what it is given."""
    schema = target._schema
    return frozenset(one.name for one in schema.arguments if str(one.type) in NUMBERS), schema.returns[
        0
    ].alias_info is not None


def name_of(target: Any) -> str:
    return str(target._schema.name.split("::")[1])
