"""Which branches mix tokens, tried: one token of what it reads is changed, and the others of its output are looked at.

One pass changes a token of what every branch reads: after each addition the sum is what it was in the untouched pass, but for one
token. So a branch that changes the row of another token does so by itself, whatever lies before it. Two passes, of two places, see
both directions. What differs by rounding is equal: experts are given other tokens in another pass, and round differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from rankfall.models.modules.flow import Branch, BranchPart, Flow, Layout
from rankfall.models.modules.given import Arguments
from rankfall.models.modules.passes import Edits, run_through

PLACES = (0.4, 0.56)  # of each axis
FURTHER = (0.0, 0.12, 0.24, 0.76, 0.88, 0.99)  # where these may be padding, that attention does not look at
ROUNDING = 256  # units
Spot = tuple[int, ...]


@dataclass
class TokenMixing:
    """What was seen of one branch."""

    spots: set[tuple[Spot, Spot]] = field(
        default_factory=set
    )  # (a place that was changed, another that changed with it)
    tried: bool = False
    parts: dict[int, list[bool]] = field(default_factory=dict)  # of each sum of parts: whether left and right mix

    @property
    def mixes(self) -> bool:
        return bool(self.spots)


def change_row(tensor: Tensor, feature: int, part: float, streams: tuple[int, ...] = ()) -> tuple[Tensor, Spot]:
    """A copy with one row changed by about its own size, in all `streams`, and the place of the row."""
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
    """The places of these axes among those that are not the features."""
    return [axis - (axis > feature % dims) for axis in streams if axis < dims]


def differing(one: Tensor, other: Tensor, feature: int, streams: tuple[int, ...] = ()) -> set[Spot]:
    """Places of rows that are not equal, but for rounding; of several streams of a token, any."""
    if one.shape != other.shape:
        return set()
    size = other.detach().nan_to_num(0.0, 0.0, 0.0).abs().max()
    close = (one - other).abs() <= ROUNDING * torch.finfo(one.dtype).eps * size
    apart = ~(close | (one == other) | (one.isnan() & other.isnan()))
    rows = apart.movedim(feature, -1).any(-1)
    for place in places_of_streams(streams, feature, one.dim()):
        rows = rows.any(place, keepdim=True)
    return {tuple(place) for place in rows.nonzero().tolist()}


@dataclass
class MixingTrial:
    """The passes that try the branches of a stream; the layout of the flow needs its features only."""

    flow: Flow
    found: dict[int, TokenMixing]
    part: float = 0.0
    values: dict[int, tuple[Tensor, Tensor, Tensor]] = field(
        default_factory=dict
    )  # state, branch, sum of the untouched pass
    terms: dict[BranchPart, tuple[Tensor, Tensor]] = field(default_factory=dict)
    moved: set[Spot] = field(default_factory=set)  # rows that differ in what the next branch reads
    following: set[Spot] = field(default_factory=set)  # and in the last sum

    def keep(self, branch: Branch, state: Tensor, value: Tensor) -> None:
        total = state + value if self.flow.skips else value.clone()
        self.values[branch.number] = (state.clone(), value.clone(), total)

    def keep_part(self, part: BranchPart, left: Tensor, right: Tensor) -> None:
        self.terms[part] = (left.clone(), right.clone())

    def enter(self, tensor: Tensor) -> Tensor:
        """The first state with one row changed."""
        width = self.flow.width
        second = tensor.dim() > 2 and tensor.shape[-1] != width and tensor.shape[1] == width
        feature = self.flow.layout.feature if tensor.shape[-1] == width and not second else 1 if second else -1
        entry = self.flow.entry
        streams = self.flow.layout.streams if entry is not None and tensor.dim() == len(entry.shape) else ()
        changed_, spot = change_row(tensor, feature, self.part, streams)
        self.following = {spot}
        return changed_

    def compare(self, branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        """Rows of the branch that changed and were not changed in what it reads; the untouched sum goes on, with one row changed."""
        before, untouched, total = self.values[branch.number]
        feature, streams = self.flow.layout.feature, self.flow.layout.streams
        if not branch.parallel:
            self.moved = differing(state, before, feature, streams)
        if self.moved:
            seen = self.found[branch.number]
            seen.tried = True
            if (
                value.squeeze().shape == state.squeeze().shape
            ):  # a branch may return its rows without an axis of one entry
                value, untouched = value.reshape(state.shape), untouched.reshape(state.shape)
            new = differing(value, untouched, feature, streams) - self.moved
            seen.spots |= {(spot, one) for spot in list(self.moved)[:1] for one in new}
        following, spot = change_row(total, feature, self.part, streams)
        self.following = {spot}
        return following

    def compare_part(self, part: BranchPart, left: Tensor, right: Tensor) -> None:
        """The same of the parts of a branch, by the rows that were changed in the sum before it."""
        branch = next(one for one in self.flow.branches if part in one.parts)
        number = branch.parts.index(part)
        feature, streams = self.flow.layout.feature, self.flow.layout.streams
        flags = [
            len(differing(tensor, kept, feature, streams) | self.following) > 1
            for tensor, kept in zip((left, right), self.terms[part])
        ]
        known = self.found[branch.number].parts.get(number, [False, False])
        self.found[branch.number].parts[number] = [a or b for a, b in zip(known, flags)]


def mixing(
    model: nn.Module, arguments: Arguments, flow: Flow, attending: frozenset[int] = frozenset()
) -> dict[int, TokenMixing]:
    """What was seen of each branch, by its number. One that returns zero, behind a gate or map of zeros, is tried with these opened.
    `attending`: numbers of those with attention on their way, of which one at least has to mix unless all read elsewhere."""
    trial = tried(model, arguments, flow, attending)
    silent = [number for number, (_, value, _) in trial.values.items() if not bool(value.any())]
    if not silent:
        return trial.found
    with opened(model):
        other = tried(model, arguments, flow, attending)
    return trial.found | {number: other.found[number] for number in silent}


@contextmanager
def opened(model: nn.Module) -> Iterator[None]:
    """Inside this context, weights that are all zero are small random numbers."""
    generator = torch.Generator().manual_seed(2)
    zeros = [one for one in model.parameters() if one.is_floating_point() and one.numel() and not bool(one.any())]
    try:
        for one in zeros:
            one.data.copy_(0.1 * torch.randn(one.shape, generator=generator, dtype=torch.float64))
        yield
    finally:
        for one in zeros:
            one.data.zero_()


def tried(model: nn.Module, arguments: Arguments, flow: Flow, attending: frozenset[int]) -> MixingTrial:
    """The passes of a trial; more, of other places, where no attention was seen to mix."""
    trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
    run_through(model, arguments, flow, Edits(edit=trial.keep, join=trial.keep_part))
    try_places(model, arguments, flow, trial, PLACES)
    if attending and not any(trial.found[number].mixes for number in attending):
        try_places(model, arguments, flow, trial, FURTHER)
    return trial


def try_places(
    model: nn.Module, arguments: Arguments, flow: Flow, trial: MixingTrial, places: tuple[float, ...]
) -> None:
    """A pass for each place."""
    for trial.part in places:
        trial.moved, trial.following = set(), set()
        run_through(
            model, arguments, flow, Edits(edit=trial.compare, enter=trial.enter, join=trial.compare_part, partial=True)
        )


def laid_out(
    shape: tuple[int, ...], feature: int, found: dict[int, TokenMixing], batch: int, streams: tuple[int, ...] = ()
) -> Layout:
    """Which axes are samples: those along which nothing is ever mixed. Where one axis holds all rows, samples are found in it."""
    axes = [axis for axis in range(len(shape)) if axis != feature % len(shape)]
    spots = {pair for one in found.values() for pair in one.spots if len(pair[0]) == len(axes)}
    mixed = {axes[n] for one, other in spots for n, (a, b) in enumerate(zip(one, other)) if a != b}
    axes = [axis for axis in axes if axis not in streams]
    if streams:
        tokens = tuple(mixed) or tuple(axes[1:])
        return Layout(
            feature, tuple(axis for axis in axes if axis not in tokens), tuple(sorted(tokens)), streams=streams
        )
    if not mixed:  # nothing says which are tokens: the first axis is samples, as is usual
        return Layout(feature, tuple(axes[:1]) if len(axes) > 1 else (), tuple(axes[1:] if len(axes) > 1 else axes))
    samples = tuple(axis for axis in axes if axis not in mixed)
    tokens = tuple(axis for axis in axes if axis in mixed)
    if len(axes) == 1 and batch > 1 and shape[axes[0]] % batch == 0:
        each = shape[axes[0]] // batch
        if each > 1 and all(one[0] // each == other[0] // each for one, other in spots):
            return Layout(feature, (), tokens, groups=batch)
        if each > 1 and all(one[0] % batch == other[0] % batch for one, other in spots):
            return Layout(feature, (), tokens, groups=batch, strided=True)
    return Layout(feature, samples, tokens)


def directions(found: TokenMixing, layout: Layout) -> tuple[bool, bool]:
    """Whether a token changes later ones, and earlier ones, in the order of the tokens' axes."""
    axes = sorted((*layout.samples, *layout.tokens, *layout.streams))
    order = [axes.index(axis) for axis in layout.tokens]
    pairs = [(tuple(one[n] for n in order), tuple(other[n] for n in order)) for one, other in found.spots]
    return any(b > a for a, b in pairs), any(b < a for a, b in pairs)
