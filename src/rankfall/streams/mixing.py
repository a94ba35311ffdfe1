"""Test of which branches mix tokens: change one token of a branch's input and look at the other tokens of its output.

One pass tests every branch: after each addition the sum is that of the untouched pass except for one token. So a branch that changes
the row of another token does so by itself, whatever lies before it. Two passes at two positions show both directions. Differences by
rounding do not count: experts receive other tokens in another pass and round differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.flow import Branch, BranchPart, Edits, Flow, Layout

PLACES = (0.4, 0.56)  # shares of each axis
# further places, in case the first two are padding, which attention ignores
FURTHER = (0.0, 0.12, 0.24, 0.76, 0.88, 0.99)
ROUNDING = 256  # units of the dtype's eps that two equal results may differ by
Spot = tuple[int, ...]


@dataclass
class TokenMixing:
    """The result of the test for one branch."""

    # (changed position, another position that changed with it)
    spots: set[tuple[Spot, Spot]] = field(default_factory=set)
    tried: bool = False
    parts: dict[int, list[bool]] = field(default_factory=dict)  # for each sum of parts: whether left and right mix

    @property
    def mixes(self) -> bool:
        return bool(self.spots)


def change_row(tensor: Tensor, feature: int, part: float, streams: tuple[int, ...] = ()) -> tuple[Tensor, Spot]:
    """Return a copy with one row changed by about the tensor's RMS, in all `streams`, and the position of the row."""
    moved = tensor.detach().clone().movedim(feature, -1)
    spot = tuple(min(size - 1, int(size * part)) for size in moved.shape[:-1])
    noise = torch.randn(moved.shape[-1], generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(
        moved.dtype
    )
    flat = places_of_streams(streams, feature, tensor.dim())
    where = tuple(slice(None) if place in flat else at for place, at in enumerate(spot))
    moved[where] = noise * moved.pow(2).mean().sqrt().clamp_min(1e-6) - moved[where]
    return moved.movedim(-1, feature), tuple(0 if place in flat else at for place, at in enumerate(spot))


def places_of_streams(streams: tuple[int, ...], feature: int, dims: int) -> list[int]:
    """Return the indices of these axes among all axes but the features."""
    return [axis - (axis > feature % dims) for axis in streams if axis < dims]


def differing(value: Tensor, reference: Tensor, feature: int, streams: tuple[int, ...] = ()) -> set[Spot]:
    """Return the positions of rows that differ by more than rounding, in any of several streams of a token."""
    if value.shape != reference.shape:
        return set()
    rows = differs(value, reference, ROUNDING * torch.finfo(value.dtype).eps).movedim(feature, -1).any(-1)
    for place in places_of_streams(streams, feature, value.dim()):
        rows = rows.any(place, keepdim=True)
    return {tuple(place) for place in rows.nonzero().tolist()}


@dataclass
class MixingTrial:
    """The passes that test the branches of a stream. They use only the feature axis and the streams of the flow's layout."""

    flow: Flow
    results: dict[int, TokenMixing]  # by number of branch
    part: float = 0.0
    # state, branch, sum of the untouched pass
    values: dict[int, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    terms: dict[BranchPart, tuple[Tensor, Tensor]] = field(default_factory=dict)
    moved: set[Spot] = field(default_factory=set)  # rows that differ in the input of the next branch
    following: set[Spot] = field(default_factory=set)  # rows that differ in the last sum

    def keep(self, branch: Branch, state: Tensor, value: Tensor) -> None:
        total = state + value if self.flow.skips else value.clone()
        self.values[branch.number] = (state.clone(), value.clone(), total)

    def keep_part(self, part: BranchPart, left: Tensor, right: Tensor) -> None:
        self.terms[part] = (left.clone(), right.clone())

    def enter(self, tensor: Tensor) -> Tensor:
        """Return the first state with one row changed."""
        width = self.flow.width
        second = tensor.dim() > 2 and tensor.shape[-1] != width and tensor.shape[1] == width
        feature = self.flow.layout.feature if tensor.shape[-1] == width and not second else 1 if second else -1
        streams = self.flow.layout.streams if tensor.dim() == len(self.flow.shape) else ()
        altered, spot = change_row(tensor, feature, self.part, streams)
        self.following = {spot}
        return altered

    def compare(self, branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        """Record rows that changed in the branch but not in its input. Return the untouched sum with one row changed."""
        before, untouched, total = self.values[branch.number]
        feature, streams = self.flow.layout.feature, self.flow.layout.streams
        if not branch.parallel:
            self.moved = differing(state, before, feature, streams)
        if self.moved and bool(untouched.isfinite().all()):  # NaN everywhere shows nothing
            result = self.results[branch.number]
            result.tried = True
            if value.squeeze().shape == state.squeeze().shape:  # a branch may return its rows without an axis of size 1
                value, untouched = value.reshape(state.shape), untouched.reshape(state.shape)
            new = differing(value, untouched, feature, streams) - self.moved
            result.spots |= {(spot, other) for spot in list(self.moved)[:1] for other in new}
        following, spot = change_row(total, feature, self.part, streams)
        self.following = {spot}
        return following

    def compare_part(self, part: BranchPart, left: Tensor, right: Tensor) -> None:
        """Record which parts of a branch changed rows other than the one that was changed in the sum before it."""
        branch = next(branch for branch in self.flow.branches if part in branch.parts)
        number = branch.parts.index(part)
        feature, streams = self.flow.layout.feature, self.flow.layout.streams
        flags = [
            len(differing(tensor, untouched, feature, streams) | self.following) > 1
            for tensor, untouched in zip((left, right), self.terms[part])
        ]
        before = self.results[branch.number].parts.get(number, [False, False])
        self.results[branch.number].parts[number] = [a or b for a, b in zip(before, flags)]


def mixing(
    model: nn.Module, arguments: Arguments, flow: Flow, attending: frozenset[int] = frozenset()
) -> dict[int, TokenMixing]:
    """Return the test result of each branch, by its number.

    A branch that returns zero, behind a gate or map of zeros, is tested with random weights in place of the zeros. `attending`: numbers
    of branches with attention. If none of them seems to mix, further positions are tested.
    """
    trial = run_trial(model, arguments, flow, attending)
    silent = [number for number, (_, value, _) in trial.values.items() if not bool(value.any())]
    if not silent:
        return trial.results
    with fill_zero_weights(model):
        filled_trial = run_trial(model, arguments, flow, attending)
    return trial.results | {number: filled_trial.results[number] for number in silent}


@contextmanager
def fill_zero_weights(model: nn.Module) -> Iterator[None]:
    """Replace weights that are all zero by small random numbers inside this context."""
    generator = torch.Generator().manual_seed(2)
    zeros = [weight for weight in model.parameters() if weight.is_floating_point() and not bool(weight.any())]
    try:
        for weight in zeros:
            weight.data.copy_(0.1 * torch.randn(weight.shape, generator=generator, dtype=torch.float64))
        yield
    finally:
        for weight in zeros:
            weight.data.zero_()


def run_trial(model: nn.Module, arguments: Arguments, flow: Flow, attending: frozenset[int]) -> MixingTrial:
    """Run the passes of a trial, with more positions if no attention seems to mix."""
    trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
    run_through(model, arguments, flow, Edits(edit=trial.keep, join=trial.keep_part))
    try_places(model, arguments, flow, trial, PLACES)
    if attending and not any(trial.results[number].mixes for number in attending):
        try_places(model, arguments, flow, trial, FURTHER)
    return trial


def try_places(
    model: nn.Module, arguments: Arguments, flow: Flow, trial: MixingTrial, places: tuple[float, ...]
) -> None:
    """Run one pass for each position."""
    for trial.part in places:
        trial.moved, trial.following = set(), set()
        run_through(
            model, arguments, flow, Edits(edit=trial.compare, enter=trial.enter, join=trial.compare_part, partial=True)
        )


def laid_out(
    shape: tuple[int, ...], feature: int, results: dict[int, TokenMixing], batch: int, streams: tuple[int, ...] = ()
) -> Layout:
    """Return the layout: axes along which nothing mixes are samples. A single axis of rows is split into samples if these do not mix."""
    axes = [axis for axis in range(len(shape)) if axis != feature % len(shape)]
    spots = {pair for result in results.values() for pair in result.spots if len(pair[0]) == len(axes)}
    mixed = {axes[n] for changed, affected in spots for n, (a, b) in enumerate(zip(changed, affected)) if a != b}
    axes = [axis for axis in axes if axis not in streams]
    if streams:
        tokens = tuple(sorted(mixed)) or tuple(axes[1:])
        return Layout(feature, tuple(axis for axis in axes if axis not in tokens), tokens, streams=streams)
    if not mixed:  # nothing shows the tokens: the first axis is samples, as usual, and the second behind one of size 1
        first = 0 if len(axes) == 1 else 2 if len(axes) > 2 and shape[axes[0]] == 1 else 1
        return Layout(feature, tuple(axes[:first]), tuple(axes[first:]))
    samples = tuple(axis for axis in axes if axis not in mixed)
    tokens = tuple(axis for axis in axes if axis in mixed)
    if len(axes) == 1 and batch > 1 and shape[axes[0]] % batch == 0:
        size = shape[axes[0]] // batch
        if size > 1 and all(changed[0] // size == affected[0] // size for changed, affected in spots):
            return Layout(feature, (), tokens, groups=batch)
        if size > 1 and all(changed[0] % batch == affected[0] % batch for changed, affected in spots):
            return Layout(feature, (), tokens, groups=batch, strided=True)
    return Layout(feature, samples, tokens)


def directions(result: TokenMixing, layout: Layout) -> tuple[bool, bool, int, int]:
    """Return whether a token changes later and earlier tokens, in the order of the tokens' axes, and the largest distance of each kind.

    The distance counts positions of the first axis of the tokens.
    """
    axes = sorted((*layout.samples, *layout.tokens, *layout.streams))
    order = [axes.index(axis) for axis in layout.tokens]
    pairs = [
        (tuple(changed[n] for n in order), tuple(affected[n] for n in order)) for changed, affected in result.spots
    ]
    later = [b[0] - a[0] for a, b in pairs if b > a]
    earlier = [a[0] - b[0] for a, b in pairs if b < a]
    return bool(later), bool(earlier), max(later, default=0), max(earlier, default=0)
