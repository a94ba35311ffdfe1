"""Run a recorded model again with other arguments or edits, and find the rows of its states and the numbers of its outputs that change."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Branch, Edits, Flow
from rankfall.streams.record import put, tensors_in

NO_TOKENS = ("mask", "position", "type")  # parts of names of arguments
Change = Callable[[Tensor], Tensor]


def run_pass(examined: Examined, flow: Flow, arguments: Arguments | None = None, **edits: Any) -> PassResult:
    """Run a pass with other arguments or with edits. The states of the result are rows (S, T, D).

    A stream that begins with an argument begins with the changed one.
    """
    entry = flow.entry
    if arguments is not None and entry is not None and entry.operation is None:
        pairs = zip(examined.arguments.tensors(), arguments.tensors())
        tensor = next((new for old, new in pairs if old is entry.tensor), entry.tensor)
        flow = replace(flow, entry=replace(entry, tensor=tensor))
    after = run_through(examined.model, arguments or examined.arguments, flow, Edits(**edits))
    return replace(after, states=[flow.layout.to_rows(state) for state in after.states])


def changed_rows(after: list[Tensor], before: list[Tensor]) -> list[Tensor]:
    """Return which rows (S, T) of each state change."""
    return [differs(state, other).any(-1) for state, other in zip(after, before)]


def changed_outputs(after: Any, before: Any) -> dict[tuple[Any, ...], Tensor]:
    """Return which numbers change in the outputs that are floating-point and keep their shape, by path."""
    old = dict(tensors_in(before))
    return {
        path: differs(new, old[path])
        for path, new in tensors_in(after)
        if path in old and new.shape == old[path].shape and new.is_floating_point()
    }


def change_entry(flow: Flow, tensor: Tensor, change: Change) -> Tensor:
    """Change the rows of the tensor that the stream begins with, or return it unchanged if its shape is not that of the states."""
    if flow.entry is None or tuple(tensor.shape) != flow.entry.shape:
        return tensor
    return flow.layout.from_rows(change(flow.layout.to_rows(tensor)), tensor)


def named_tensors(arguments: Arguments) -> dict[str, Tensor]:
    """Return the tensors of a call by keyword or position, with the keys that lead to them: "input_ids", "0", "0.input_ids"."""
    return {".".join(map(str, path[1:])): tensor for path, tensor in tensors_in((arguments.args, arguments.kwargs))}


def call_argument(name: str) -> str:
    """Return the name of an argument for a sentence, or its place if it has no name."""
    return f"argument {int(name) + 1}" if name.isdigit() else name.rpartition(".")[2]


def named_inputs(arguments: Arguments) -> dict[str, Tensor]:
    """Return the tensors that may hold tokens or vectors."""
    named = named_tensors(arguments).items()
    return {name: tensor for name, tensor in named if not any(word in name for word in NO_TOKENS) and tensor.dim() > 1}


def float_inputs(arguments: Arguments) -> dict[str, Tensor]:
    """Return the tensors that may hold vectors, pictures or sounds."""
    return {name: tensor for name, tensor in named_inputs(arguments).items() if tensor.is_floating_point()}


def change_named(arguments: Arguments, chosen: set[str], change: Change) -> Arguments:
    """Return the arguments with the chosen ones changed."""
    call = (arguments.args, arguments.kwargs)
    for path, tensor in tensors_in(call):
        if ".".join(map(str, path[1:])) in chosen:
            call = put(call, path, change(tensor))
    return Arguments(*call)


def token_inputs(arguments: Arguments, shape: tuple[int, int]) -> set[str]:
    """Return the names of the arguments that hold token numbers (B, T)."""
    return {
        name
        for name, tensor in named_inputs(arguments).items()
        if tensor.dtype in (torch.int64, torch.int32) and tuple(tensor.shape) == shape
    }


def change_inputs(arguments: Arguments, shape: tuple[int, int], change: Change) -> Arguments | None:
    """Return the arguments with tokens (B, T) changed. Without tokens, change vectors, pictures and sounds; without these, return None."""
    vectors = float_inputs(arguments)
    most = max((tensor.dim() for tensor in vectors.values()), default=0)
    least = min(most, 3)  # a tensor with fewer axes, beside one with features, may be a mask
    chosen = token_inputs(arguments, shape) or {name for name, x in vectors.items() if x.dim() >= least}
    return change_named(arguments, chosen, change) if chosen else None


def reverse_tokens(arguments: Arguments, shape: tuple[int, int]) -> Arguments | None:
    """Return the arguments with all tokens in reversed order, or None if no tokens are known."""
    return change_inputs(arguments, shape, lambda tensor: tensor.flip(tuple(range(1, tensor.dim()))))


class HeldStates:
    """Hold the states of a pass without changes, so that each branch of a later one reads a change of them, whatever lies before it."""

    def __init__(self, examined: Examined, flow: Flow) -> None:
        self.examined, self.flow = examined, flow
        self.totals: dict[int, Tensor] = {}  # by number of branch: the state after its addition
        entered: list[Tensor] = []

        def keep(branch: Branch, state: Tensor, value: Tensor) -> None:
            self.totals[branch.number] = state + value if flow.skips else value.clone()

        def enter(tensor: Tensor) -> Tensor:
            entered[:] = [tensor.detach().clone()]
            return tensor

        first = run_through(examined.model, examined.arguments, flow, Edits(edit=keep, enter=enter)).states[0]
        samples, tokens, _ = flow.layout.to_rows(first).shape
        self.shape = samples, tokens
        self.entry = entered[0] if entered else first

    def run(
        self,
        change: Change,
        look: Callable[[Branch, Tensor, Tensor], None],
        arguments: Arguments | None = None,
        **edits: Any,
    ) -> None:
        """Run a pass in which the rows (S, T, D) of every state are changed. `look` sees each branch with its state and value."""
        flow = self.flow

        def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
            look(branch, state, value)
            total = self.totals[branch.number]
            return flow.layout.from_rows(change(flow.layout.to_rows(total)), total)

        def enter(tensor: Tensor) -> Tensor:
            return change_entry(flow, self.entry if self.entry.shape == tensor.shape else tensor, change)

        run_pass(self.examined, flow, arguments, edit=edit, enter=enter, partial=True, **edits)
