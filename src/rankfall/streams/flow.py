"""The description of a residual stream: its layers, branches, entry and ends, the layout of its states, and the edits of a pass over it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.streams.arguments import in_float64
from rankfall.streams.frames import Call, Operation

MIXES, TOKENWISE, CROSS = "mixes tokens", "token by token", "reads elsewhere"


@dataclass(frozen=True)
class BranchPart:
    """An addition inside a branch that joins two parts side by side. `drop` is the operand that mixes no tokens if the other does."""

    operation: Operation
    drop: int | None


@dataclass(frozen=True)
class Branch:
    """One residual addition: state + branch."""

    number: int  # 0, 1, ... in the stream
    layer: int  # 1, 2, ...
    operation: Operation
    skip: int  # index of the operand that is the state
    name: str  # of the module that computes it, within the layer
    kind: str = TOKENWISE
    forwards: bool = False  # a token changes later ones
    backwards: bool = False  # a token changes earlier ones
    after: int = 0  # the largest distance to a later token that changes
    ahead: int = 0  # the largest distance to an earlier token that changes: the number of tokens that it sees ahead
    parallel: bool = False  # reads the state that entered the layer's other branch
    parts: tuple[BranchPart, ...] = ()
    gate: Operation | None = None  # the product of the state and a gate that is the operand `skip`
    factor: int = 0  # the state among the two factors of that product

    @property
    def mixes(self) -> bool:
        return self.kind == MIXES


@dataclass(frozen=True)
class StreamEntry:
    """The beginning of a stream: the operation that makes its first state, or else a tensor that is an input or a weight of the model."""

    operation: Operation | None
    tensor: Tensor | None
    shape: tuple[int, ...]
    part: int = 0  # its place among the tensors that the operation returns


@dataclass(frozen=True)
class Layout:
    """The axes of a state (in the model's shape) that are samples, tokens and features."""

    feature: int  # axis
    samples: tuple[int, ...]  # axes
    tokens: tuple[int, ...]  # axes
    groups: int = 1  # samples in one axis of tokens, one after the other
    strided: bool = False  # the samples of such an axis alternate instead
    streams: tuple[int, ...] = ()  # axes of several streams of one token, whose vectors are concatenated in a row

    def ordered(self, dims: int) -> tuple[list[int], list[int], list[int]]:
        """Return the axes of samples, of tokens, and of features behind those of several streams."""
        feature = self.feature % dims
        samples = [axis for axis in self.samples if axis < dims and axis != feature]
        features = [*(axis for axis in self.streams if axis < dims), feature]
        return samples, [axis for axis in range(dims) if axis not in (*samples, *features)], features

    def to_rows(self, state: Tensor) -> Tensor:
        """Return a state in the shape (S, T, D)."""
        samples, tokens, features = self.ordered(state.dim())
        size = math.prod(state.shape[axis] for axis in samples)
        flat = state.permute(*samples, *tokens, *features)
        flat = flat.reshape(size, -1, math.prod(state.shape[axis] for axis in features))
        if state.dim() > 1 and self.groups > 1:
            if self.strided:
                flat = flat.reshape(size, -1, self.groups, flat.shape[-1]).transpose(1, 2)
            flat = flat.reshape(size * self.groups, -1, flat.shape[-1])
        return flat

    def from_rows(self, rows: Tensor, state: Tensor) -> Tensor:
        """Return states (S, T, D) in the model's shape, that of `state`."""
        order = [axis for axes in self.ordered(state.dim()) for axis in axes]
        if self.groups > 1:
            size = rows.shape[0] // self.groups
            rows = rows.reshape(size, self.groups, -1, rows.shape[-1])
            rows = rows.transpose(1, 2) if self.strided else rows
        shaped = rows.reshape([state.shape[axis] for axis in order])
        return shaped.permute([order.index(axis) for axis in range(state.dim())])


@dataclass(frozen=True)
class End:
    """The part of a module's output that is the state leaving a layer."""

    call: Call
    path: tuple[Any, ...]


@dataclass(frozen=True)
class Flow:
    """One residual stream."""

    name: str
    layers: tuple[str, ...]  # names of the modules
    width: int
    branches: tuple[Branch, ...]
    entry: StreamEntry | None
    ends: tuple[End | None, ...]  # one per layer; None: its last sum is the state
    layout: Layout
    attends: dict[Operation, int]  # softmaxes and fused attention -> number of their branch
    scores: dict[Operation, int]  # explicit products of queries and keys -> number of their branch
    post: bool = False  # a norm stands between one addition and the next state
    skips: bool = True  # False: layers without additions; a branch is a call of a layer
    around: bool = False  # without `skips`: a skip passes the layers outside of them, and what they return is no state
    inside: bool = False  # without `skips`: each layer has additions inside it
    outside: tuple[str, ...] = ()  # modules of later additions of the stream that are in no layer
    missing: tuple[str, ...] = ()  # what the stream should hold and does not, a sentence each
    unmeasured: tuple[str, ...] = ()  # sound parts of the model that no layer holds, a sentence each
    follows: str | None = None  # name of the stream whose last state enters this one through maps without a skip
    joins: tuple[str, ...] = ()  # modules of these maps
    resized: bool = False  # these maps change the number of tokens, so that no skip could pass them
    shaped: bool = True  # whether the names of additions include their shapes
    touching: str = ""  # the first layer at which one sample affects another; empty: none

    @property
    def depth(self) -> int:
        return len(self.layers)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a state; empty if no single operation makes the first one, in a draft of a stream."""
        return self.entry.shape if self.entry is not None else ()

    @property
    def parallel(self) -> bool:
        return any(branch.parallel or branch.parts for branch in self.branches)

    @property
    def causal(self) -> bool:
        return any(branch.mixes for branch in self.branches) and not any(branch.backwards for branch in self.branches)

    @property
    def mixer(self) -> str:
        """The kind of mixing: attention (a softmax over tokens), mixing without softmax, hybrid, or none."""
        weighed = [branch.number in self.attends.values() for branch in self.branches if branch.mixes]
        if not weighed:
            return "none"
        return "attention" if all(weighed) else "hybrid" if any(weighed) else "mixing without softmax"

    def of_layer(self, layer: int) -> list[Branch]:
        return [branch for branch in self.branches if branch.layer == layer]

    def summary(self, kinds: bool = True) -> str:
        """Return the numbers of additions and layers, the kinds of branches if `kinds` are known, and the width in one line."""
        branch_kinds = [branch.kind for branch in self.branches]
        words_of = {MIXES: ("mixes tokens", "mix tokens"), TOKENWISE: ("acts token by token", "act token by token")}
        words_of[CROSS] = ("reads outside the stream", "read outside the stream")
        tally = ", ".join(
            f"{branch_kinds.count(kind)} {words[branch_kinds.count(kind) > 1]}"
            for kind, words in words_of.items()
            if kind in branch_kinds
        )
        unit = "residual additions" if self.skips else "calls without residual additions"
        count = math.prod(self.shape[axis] for axis in self.layout.streams)
        wide = f"{count} streams a token of width" if count > 1 else "width"
        return f"{len(branch_kinds)} {unit} in {self.depth} layers{f' ({tally})' * kinds}, {wide} {self.width}"


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
