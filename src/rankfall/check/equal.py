"""Set all tokens equal, count the rows that they become, and find out whether layers read the inputs again.

Some layers read the inputs past the first state, as in x + x0. An equal first state does not make their tokens equal, so the inputs
are set equal instead.
"""

from functools import partial

import torch
from torch import Tensor

from rankfall.check.layer import StreamReport
from rankfall.check.passes import (
    Change,
    change_entry,
    change_inputs,
    change_named,
    float_inputs,
    reverse_tokens,
    run_pass,
    token_inputs,
)
from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow

EQUAL = 1e-9  # distance of two rows, relative to the longest row, up to which float64 counts them as equal
IN_INPUTS, CONSTANT = "in the inputs", "in the inputs, which are constant"
UNEQUAL = "tokens cannot be made equal: what the stream begins with has another shape"
READ_AGAIN = "not known: the layers read the inputs again past the first state, and no inputs are known for which it has equal rows"


def equal_rows(rows: Tensor, distance: float | Tensor) -> Tensor:
    """Return which pairs of rows of (T, D) are as near as this, (T, T)."""
    return torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist") <= distance


def distinct_rows(rows: Tensor) -> int:
    """Return how many rows of (T, D) differ from all earlier rows by more than rounding."""
    size = float(rows.norm(dim=-1).max()) or 1.0
    return int((~equal_rows(rows, EQUAL * size).tril(-1).any(1)).sum())


def count_rows(examined: Examined, flow: Flow, arguments: Arguments | None, **edits: Change) -> list[int]:
    """Return the number of distinct rows of the first sample in each state."""
    return [distinct_rows(state[0]) for state in run_pass(examined, flow, arguments, **edits).states]


def reads_again(examined: Examined, flow: Flow, shape: tuple[int, int], enter: Change) -> bool:
    """Return whether states change with the inputs although the first state, which `enter` sets, does not."""
    reversed_call = reverse_tokens(examined.arguments, shape)
    if reversed_call is None:
        return False
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(enter(tensor))
        return kept[0]

    def put_kept(tensor: Tensor) -> Tensor:
        return kept[0].clone() if kept[0].shape == tensor.shape else tensor

    before = run_pass(examined, flow, enter=keep).states
    try:
        after = run_pass(examined, flow, reversed_call, enter=put_kept).states
    except (*FAILURES, RankfallError):
        return False
    return any(new.shape == old.shape and bool(differs(new, old).any()) for new, old in zip(after, before))


def equal_inputs(examined: Examined, flow: Flow, shape: tuple[int, int]) -> Arguments | None:
    """Return the arguments with the first token everywhere if the first state then has equal rows."""

    def as_states(tensor: Tensor) -> Tensor:
        return change_entry(flow, tensor, repeat_first).clone()

    for change in (as_states, partial(repeat_place, features=-1), partial(repeat_place, features=1)):
        changed = change_inputs(examined.arguments, shape, change)
        if changed is None:
            return None
        try:
            rows = run_pass(examined, flow, changed).states[0][0]
        except (*FAILURES, RankfallError):
            continue
        if bool(rows.any()) and distinct_rows(rows) == 1:
            return changed
    return None


def repeat_first(rows: Tensor) -> Tensor:
    """Return rows (S, T, ...) with the first one of each sample everywhere."""
    return rows[:, :1].expand_as(rows)


def repeat_place(tensor: Tensor, features: int) -> Tensor:
    """Return an input (B, ..., D), or (B, C, ...) with features along another axis, with one place of each sample everywhere."""
    kept = (0, features % tensor.dim()) if tensor.dim() > 2 else (0,)
    index = tuple(slice(None) if axis in kept else slice(0, 1) for axis in range(tensor.dim()))
    return tensor[index].expand_as(tensor).clone()


def with_equal_tokens(
    examined: Examined, flow: Flow, shape: tuple[int, int]
) -> tuple[Arguments | None, dict[str, Change]]:
    """Return what makes all tokens the first one: arguments if they hold token numbers, else an edit that sets the first state equal."""
    if numbers := token_inputs(examined.arguments, shape):
        return change_named(examined.arguments, numbers, lambda x: repeat_first(x).clone()), {}
    return None, {"enter": lambda tensor: change_entry(flow, tensor, repeat_first)}


def distinct(examined: Examined, flow: Flow, report: StreamReport) -> str:
    """Fill in the number of distinct rows for equal tokens, and where the tokens were set equal. Return why that is not possible, or ''."""
    equal, edits = with_equal_tokens(examined, flow, report.shape)
    counts = count_rows(examined, flow, equal, **edits)
    report.equal_tokens = "in the state that enters the first layer" if edits else IN_INPUTS
    reason = UNEQUAL if counts[0] > 1 else ""
    if edits and not reason and max(counts) > 1 and reads_again(examined, flow, report.shape, **edits):
        reason = READ_AGAIN
    if edits and reason:
        inputs = equal_inputs(examined, flow, report.shape)
        report.equal_tokens = IN_INPUTS if inputs is not None else ""
        if inputs is None:
            return reason
        counts = count_rows(examined, flow, inputs)
    for layer, number in zip(report.layers, counts):
        layer.distinct = number
    return ""


def constant_floats(arguments: Arguments) -> Arguments | None:
    """Return the arguments with constant vectors, pictures and sounds, or None if there are none."""
    floats = set(float_inputs(arguments))
    return change_named(arguments, floats, lambda tensor: torch.full_like(tensor, 0.5)) if floats else None


def constant_inputs(examined: Examined, flow: Flow, report: StreamReport) -> tuple[int | None, int | None, str]:
    """Return the numbers of distinct rows in the first and last state, and where tokens are equal, for inputs that are constant.

    If the inputs are token numbers, this is the check's result. Constant pictures and sounds also show positions that are added before
    the first layer.
    """
    checked = (report.layers[0].distinct, report.layers[-1].distinct, report.equal_tokens)
    inputs = constant_floats(examined.arguments)
    if report.equal_tokens == IN_INPUTS or inputs is None:
        return checked
    try:
        counts = count_rows(examined, flow, inputs)
    except (*FAILURES, RankfallError):
        return checked
    return counts[0], counts[-1], CONSTANT
