"""The step of any optimiser as a list of operations on the rows of one member.

The step runs on tensors that have a shape and no values, and each operation is recorded. An operation that changes a tensor in place
becomes one that returns a new tensor. Python numbers, such as a correction of the learning rate that depends on the step, are recorded
separately, because only they differ between two steps with the same operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from thousandfold.decompositions import decompositions
from thousandfold.graph import AtenOperation, Form, Ref, Untraceable, form_of, numbers_in
from thousandfold.optimizers import Optimizer
from thousandfold.program.draft import LOWERINGS
from thousandfold.recorder import DispatchRecorder

NUMBERS = ("number", "Tensor", "float")  # types of arguments that are numbers, not sizes or axes


@dataclass(frozen=True, eq=False)
class OfNumber:
    place: int


of_tensor, of_number = cache(Ref), cache(OfNumber)  # one object for each value, so that comparisons are fast


@dataclass(eq=False)
class OperationNode:
    """An operation and the form of its result, and the operations that have followed it, by target and arguments. The path to a node
    determines the forms. Arguments have `Ref` for tensors and `OfNumber` for numbers."""

    operation: AtenOperation | None = None
    form: Form | None = None
    following: dict[Any, "OperationNode"] = field(default_factory=dict)


def record(
    optimizer: Optimizer, weights: int, decays: bool, dtype: torch.dtype, t: int, root: OperationNode
) -> "OptimizerRecorder":
    """Record step t on rows (1, P). The inputs are weights, gradient, slots, learning rate, scratch, and decay if used. `root`: the tree of
    the recorded operations of other steps."""
    row, scalar = ((lambda n=n: torch.empty(1, n, dtype=dtype, device="meta")) for n in (weights, 1))
    w, grads, slots, lr, scratch = row(), row(), tuple(row() for _ in range(optimizer.slots)), scalar(), row()
    decay = scalar() if decays else None
    inputs = [w, grads, *slots, lr, scratch, *([] if decay is None else [decay])]
    recorder = OptimizerRecorder(inputs, root)
    try:
        with recorder, torch.no_grad():
            optimizer.step(w, grads, slots, lr, decay, t, scratch)
    except Untraceable:
        raise
    except Exception as error:
        raise Untraceable(f"the optimiser: {type(error).__name__}: {error}") from error
    recorder.results = tuple(recorder.now[id(x)] for x in inputs)
    return recorder


class OptimizerRecorder(DispatchRecorder):
    """A recorded step. The inputs have the first tensor numbers, and the result of each operation has the next one."""

    def __init__(self, inputs: Sequence[Tensor], root: OperationNode) -> None:
        super().__init__()
        self.last = root
        self.held = list(inputs)  # keep references, so that no id is reused
        self.now = {id(x): i for i, x in enumerate(inputs)}
        self.nodes: list[OperationNode] = []
        self.forms = [form_of(x) for x in inputs]
        self.results: tuple[int, ...] = ()  # number of the tensor that each input becomes
        self.numbers: list[float] = []  # Python numbers in the order of the operations
        self.shared: set[int] = set()  # ids of tensors that share memory with another

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        known = known_operation(func, "out" in kwargs)
        changed = kwargs.pop("out") if "out" in kwargs else args[0] if known.in_place else None
        if known.copies and args[0].shape == args[1].shape:
            result = args[1]
        elif known.lowered:
            result = self.note(known, args, kwargs)
        else:
            decomposition = decompositions().get(known.target)
            if decomposition is None:
                raise Untraceable(f"the optimiser's operation {known.target}")
            with self:
                result = decomposition(*args, **kwargs)
        if changed is None:
            return result
        if id(changed) in self.shared or changed.shape != result.shape or changed.dtype != result.dtype:
            raise Untraceable(f"the optimiser changes a part of a tensor ({func})")
        self.now[id(changed)] = self.now[id(result)]
        self.held.append(result)
        return changed

    def note(self, known: "KnownOperation", args: Any, kwargs: Any) -> Tensor:
        positional = tuple([self.note_value(x, is_number) for x, is_number in zip(args, known.numbers)])
        keywords = tuple([(name, self.note_value(x, known.named[name])) for name, x in kwargs.items()])
        ident = known, positional, keywords
        if ident not in self.last.following:
            example = known.target(*map(of_zeros, args), **{name: of_zeros(x) for name, x in kwargs.items()})
            if not isinstance(example, Tensor):
                raise Untraceable(f"the optimiser's operation {known.target}, which gives no tensor")
            result, inputs = of_tensor(len(self.forms)), numbers_in((positional, dict(keywords)))
            operation = AtenOperation(known.target, positional, dict(keywords), result, inputs, (result.number,))
            self.last.following[ident] = OperationNode(operation, form_of(example))
        self.last = self.last.following[ident]
        self.nodes.append(self.last)
        assert self.last.form is not None
        value = torch.empty(self.last.form.shape, dtype=self.last.form.dtype, device="meta")
        if known.aliases:
            self.shared |= {id(args[0]), id(value)}
        self.held.append(value)
        self.now[id(value)] = len(self.forms)
        self.forms.append(self.last.form)
        return value

    def note_value(self, x: Any, is_number: bool) -> Any:
        if isinstance(x, Tensor):
            if id(x) in self.now:
                return of_tensor(self.now[id(x)])
            if x.device.type != "cpu" or x.numel() != 1:
                raise Untraceable("a tensor that the optimiser holds")
            x = x.item()
        if is_number and isinstance(x, (int, float)) and not isinstance(x, bool):
            self.numbers.append(float(x))
            return of_number(len(self.numbers) - 1)
        return tuple(self.note_value(item, False) for item in x) if isinstance(x, (list, tuple)) else x


def of_zeros(x: Any) -> Any:
    """Return zeros for a tensor or a list of tensors without values. Operations on meta tensors would make PyTorch import its compiler."""
    if isinstance(x, (list, tuple)):
        return [of_zeros(item) for item in x]
    return torch.zeros(x.shape, dtype=x.dtype) if isinstance(x, Tensor) and x.is_meta else x


@dataclass(frozen=True, eq=False)
class KnownOperation:
    """The properties of one of PyTorch's operations."""

    target: Any  # variant that returns a new tensor
    in_place: bool  # the result replaces the first argument
    copies: bool  # copies the second argument to the first
    lowered: bool
    numbers: tuple[bool, ...]  # for each argument of the target, whether it may be a Python number
    named: dict[str, bool]  # the same by name of the argument
    aliases: bool  # the result shares memory with an argument


@cache
def known_operation(func: Any, writes_out: bool) -> KnownOperation:
    name, in_place = name_of(func), False
    target = func
    if writes_out:
        target = like(func, name)
    elif name.endswith("_") and func._schema.is_mutable:
        target, in_place = like(func, name[:-1]), True
    schema = target._schema
    named = {
        argument.name: str(argument.type).removeprefix("Optional[").removesuffix("]") in NUMBERS
        for argument in schema.arguments
    }
    aliases = schema.returns[0].alias_info is not None
    lowered = name_of(target) in LOWERINGS
    return KnownOperation(target, in_place, name == "copy_", lowered, tuple(named.values()), named, aliases)


def like(func: Any, name: str) -> Any:
    """Return the operation with this name and the arguments of `func`, except its output argument."""
    wanted = [str(argument.type) for argument in func._schema.arguments if not argument.is_out]
    packet = getattr(torch.ops.aten, name, None)
    for overload in packet.overloads() if packet is not None else ():
        operation = getattr(packet, overload)
        if (
            not operation._schema.is_mutable
            and [str(argument.type) for argument in operation._schema.arguments] == wanted
        ):
            return operation
    return func


def name_of(target: Any) -> str:
    return str(target._schema.name.split("::")[1])
