"""Change the tokens of inputs: count the rows that equal tokens become, and find out whether layers read the inputs again.

Some layers read the inputs past the first state, as in x + x0. An equal first state does not make their tokens equal, so the inputs
are set equal instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rankfall.check.layer import StreamReport
from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Edits, Flow
from rankfall.streams.record import put, tensors_in

EQUAL = 1e-9  # distance of two rows, relative to the longest row, up to which float64 counts them as equal
NO_TOKENS = ("mask", "position", "type")  # parts of names of arguments
IN_INPUTS, CONSTANT = "in the inputs", "in the inputs, which are constant"
UNEQUAL = "tokens cannot be made equal: what the stream begins with has another shape"
READ_AGAIN = "not known: the layers read the inputs again past the first state, and no inputs are known for which it has equal rows"
Change = Callable[[Tensor], Tensor]


def distinct_rows(rows: Tensor) -> int:
    """Return how many rows of (T, D) differ from all earlier rows by more than rounding."""
    size = float(rows.norm(dim=-1).max()) or 1.0
    near = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist") <= EQUAL * size
    return int((~near.tril(-1).any(1)).sum())


def named_tensors(arguments: Arguments) -> dict[str, Tensor]:
    """Return the tensors of a call by keyword or position, with the keys that lead to them: "input_ids", "0", "0.input_ids"."""
    return {".".join(map(str, path[1:])): tensor for path, tensor in tensors_in((arguments.args, arguments.kwargs))}


def call_argument(name: str) -> str:
    """Return the name of an argument for a sentence, or its place if it has no name."""
    last = name.rpartition(".")[2]
    return f"argument {int(name) + 1}" if name.isdigit() else last


def named_inputs(arguments: Arguments) -> dict[str, Tensor]:
    """Return the tensors that may hold tokens or vectors."""
    named = named_tensors(arguments).items()
    return {name: tensor for name, tensor in named if not any(word in name for word in NO_TOKENS) and tensor.dim() > 1}


def change_named(arguments: Arguments, chosen: set[str], change: Change) -> Arguments | None:
    """Return the arguments with the chosen ones changed, or None if none is chosen."""
    if not chosen:
        return None
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


def holders_of_tokens(arguments: Arguments, shape: tuple[int, int]) -> set[str]:
    """Return the names of the arguments that hold tokens (B, T), or else vectors (B, T, D)."""
    vectors = {name: tensor for name, tensor in named_inputs(arguments).items() if tensor.is_floating_point()}
    return token_inputs(arguments, shape) or {
        name for name, tensor in vectors.items() if tensor.dim() == 3 and tuple(tensor.shape[:2]) == shape
    }


def change_inputs(arguments: Arguments, shape: tuple[int, int], change: Change) -> Arguments | None:
    """Return the arguments with tokens (B, T) changed. Without tokens, change vectors, pictures and sounds; without these, return None."""
    if tokens := token_inputs(arguments, shape):
        return change_named(arguments, tokens, change)
    vectors = {name: tensor for name, tensor in named_inputs(arguments).items() if tensor.is_floating_point()}
    most = max((tensor.dim() for tensor in vectors.values()), default=0)
    least = min(most, 3)  # a tensor with fewer axes, beside one with features, may be a mask
    return change_named(arguments, {name for name, tensor in vectors.items() if tensor.dim() >= least}, change)


def change_entry(flow: Flow, tensor: Tensor, change: Change) -> Tensor:
    """Change the rows of the tensor that the stream begins with, or return it unchanged if its shape is not that of the states."""
    if flow.entry is None or tuple(tensor.shape) != flow.entry.shape:
        return tensor
    return flow.layout.from_rows(change(flow.layout.to_rows(tensor)), tensor)


def flow_of_arguments(flow: Flow, before: Arguments, after: Arguments) -> Flow:
    """Return the stream for changed arguments. If it begins with an argument, it begins with the changed one."""
    entry = flow.entry
    if entry is None or entry.operation is not None:
        return flow
    for old, new in zip(before.tensors(), after.tensors()):
        if old is entry.tensor:
            return replace(flow, entry=replace(entry, tensor=new))
    return flow


def reverse_tokens(examined: Examined, flow: Flow, shape: tuple[int, int]) -> tuple[Arguments, Flow] | None:
    """Return the arguments with all tokens in reversed order, and the stream for them, or None if no tokens are known."""
    changed = change_inputs(examined.arguments, shape, lambda tensor: tensor.flip(tuple(range(1, tensor.dim()))))
    return None if changed is None else (changed, flow_of_arguments(flow, examined.arguments, changed))


def reads_again(examined: Examined, flow: Flow, shape: tuple[int, int], enter: Change) -> bool:
    """Return whether states change with the inputs although the first state, which `enter` sets, does not."""
    reversed_call = reverse_tokens(examined, flow, shape)
    if reversed_call is None:
        return False
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(enter(tensor))
        return kept[0]

    before = run_through(examined.model, examined.arguments, flow, Edits(enter=keep)).states
    edits = Edits(enter=lambda tensor: kept[0].clone() if kept[0].shape == tensor.shape else tensor)
    try:
        after = run_through(examined.model, reversed_call[0], reversed_call[1], edits).states
    except (*FAILURES, RankfallError):
        return False
    return any(new.shape == old.shape and bool(differs(new, old).any()) for new, old in zip(after, before))


def equal_inputs(examined: Examined, flow: Flow, shape: tuple[int, int]) -> tuple[Arguments, Flow] | None:
    """Return the arguments with the first token everywhere if the first state then has equal rows, and the stream for them."""
    as_states = lambda tensor: change_entry(flow, tensor, lambda rows: rows[:, :1].expand_as(rows)).clone()  # noqa: E731
    for change in (as_states, *repeating_changes()):
        changed = change_inputs(examined.arguments, shape, change)
        if changed is None:
            return None
        changed_flow = flow_of_arguments(flow, examined.arguments, changed)
        try:
            first = run_through(examined.model, changed, changed_flow, Edits()).states[0]
        except (*FAILURES, RankfallError):
            continue
        rows = flow.layout.to_rows(first)[0]
        if bool(rows.any()) and distinct_rows(rows) == 1:
            return changed, changed_flow
    return None


def repeating_changes() -> Iterator[Change]:
    """Yield functions that repeat one place of an input: features last (B, ..., D), and first (B, C, ...)."""

    def places(tensor: Tensor, features: int) -> Tensor:
        kept = (0, features % tensor.dim()) if tensor.dim() > 2 else (0,)
        index = tuple(slice(None) if axis in kept else slice(0, 1) for axis in range(tensor.dim()))
        return tensor[index].expand_as(tensor).clone()

    yield lambda tensor: places(tensor, -1)
    yield lambda tensor: places(tensor, 1)


def count_rows(examined: Examined, arguments: Arguments, flow: Flow, edits: Edits) -> list[int]:
    """Return the number of distinct rows of the first sample in each state."""
    states = run_through(examined.model, arguments, flow, edits).states
    return [distinct_rows(flow.layout.to_rows(state)[0]) for state in states]


def with_equal_tokens(examined: Examined, flow: Flow, shape: tuple[int, int]) -> tuple[Arguments | None, Change]:
    """Return the arguments with the first token everywhere, or None without token numbers, and an edit that sets the first state equal."""
    numbers = token_inputs(examined.arguments, shape)
    equal = change_named(examined.arguments, numbers, lambda x: x[:, :1].expand_as(x).clone())
    return equal, lambda tensor: change_entry(flow, tensor, lambda rows: rows[:, :1].expand_as(rows))


def distinct(examined: Examined, flow: Flow, report: StreamReport) -> str:
    """Fill in the number of distinct rows for equal tokens, and where the tokens were set equal. Return why that is not possible, or ''."""
    shape = report.shape
    equal, enter = with_equal_tokens(examined, flow, shape)
    counts = count_rows(examined, equal or examined.arguments, flow, Edits() if equal else Edits(enter=enter))
    report.equal_tokens = IN_INPUTS if equal else "in the state that enters the first layer"
    reason = UNEQUAL if counts[0] > 1 else ""
    if not equal and not reason and max(counts) > 1 and reads_again(examined, flow, shape, enter):
        reason = READ_AGAIN
    if not equal and reason:
        inputs = equal_inputs(examined, flow, shape)
        report.equal_tokens = IN_INPUTS if inputs is not None else ""
        if inputs is None:
            return reason
        counts = count_rows(examined, *inputs, Edits())
    for layer, number in zip(report.layers, counts):
        layer.distinct = number
    return ""


def constant_inputs(examined: Examined, flow: Flow, report: StreamReport) -> tuple[int | None, int | None, str]:
    """Return the numbers of distinct rows in the first and last state, and where tokens are equal, for inputs that are constant.

    If the inputs are token numbers, this is the check's result. Constant pictures and sounds also show positions that are added before
    the first layer.
    """
    checked = (report.layers[0].distinct, report.layers[-1].distinct, report.equal_tokens)
    floats = {name for name, tensor in named_inputs(examined.arguments).items() if tensor.is_floating_point()}
    inputs = change_named(examined.arguments, floats, lambda tensor: torch.full_like(tensor, 0.5))
    if report.equal_tokens == IN_INPUTS or inputs is None:
        return checked
    try:
        with torch.no_grad():
            counts = count_rows(examined, inputs, flow, Edits())
    except (*FAILURES, RankfallError):
        return checked
    return counts[0], counts[-1], CONSTANT
