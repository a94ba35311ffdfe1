"""Try the branches of a stream again while operations over tokens are held, to find out what makes a causal model read ahead."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.check.recording import RecordedStream
from rankfall.errors import RankfallError
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.examine import FAILURES
from rankfall.streams.flow import Edits
from rankfall.streams.mixing import PLACES, MixingTrial, TokenMixing, directions
from rankfall.streams.record import CHOICES, tensors_in

SUMS = frozenset(
    {"mean", "sum", "var", "std", "var_mean", "std_mean", "norm", "vector_norm", "amax", "amin", "logsumexp"}
)
NORMS = frozenset({"layer_norm", "group_norm", "instance_norm", "rms_norm"})
TRANSFORMS = frozenset({"rfft", "irfft", "fft", "ifft"})


class Held:
    """Compute operations, and hold some kinds: sums over tokens, norms and choices of tokens are what they are in the first pass.

    A Fourier transform over tokens is padded to twice their number, as that of a convolution has to be.
    """

    def __init__(self, names: frozenset[str], tokens: int) -> None:
        self.held, self.tokens = names, tokens  # kinds of operations, and the size of the axis that holds tokens
        self.names: list[str] = []  # of the operations that are held
        self.kept: list[tuple[Tensor, Any]] = []  # their first tensors and results in the first pass
        self.place = -1  # of the next of them in a later pass; -1: this is the first

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "").removeprefix("fft_").removeprefix("linalg_")
        first = next((tensor for _, tensor in tensors_in((args, kwargs))), None)
        if name not in self.held or first is None:
            return in_float64(func, args, kwargs)
        if name in TRANSFORMS:
            return self.pad(name, func, args, kwargs)
        result = in_float64(func, args, kwargs)
        option = (*args[1:], *kwargs.values())
        if name in SUMS:
            over = count_sides(result, self.tokens) < count_sides(first, self.tokens)
        elif name in CHOICES:
            places = 1 + (name == "topk")
            axis = kwargs.get("dim", args[places] if len(args) > places else -1)
            over = first.shape[axis] == self.tokens
        else:  # a layer norm is over tokens if its shape has several axes
            over = name in ("group_norm", "instance_norm") or any(
                isinstance(x, tuple | list) and len(x) > 1 for x in option
            )
        if not over:
            return result
        if self.place < 0:
            self.names.append(name)
            self.kept.append((first.clone(), result))
            return result
        before, kept = self.kept[self.place % len(self.kept)]
        self.place += 1
        if name in SUMS:
            return kept
        if name in NORMS:
            return torch.where(differs(first, before), result, kept)
        indices = kept if isinstance(kept, Tensor) else kept[1]
        return indices if isinstance(kept, Tensor) else type(kept)((first.gather(axis, indices), indices))

    def pad(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a transform over twice as many tokens, or the first tokens of an inverse transform."""
        named = dict(zip(("input", "n", "dim"), args)) | kwargs
        x, axis = named["input"], named.get("dim", -1)
        inverse, sizes = name.startswith("i"), (2 * self.tokens, self.tokens + 1)
        if not inverse and (named.get("n") or x.shape[axis]) == self.tokens:
            self.names.append(name)
            return func(**named | {"n": 2 * self.tokens})
        if inverse and x.shape[axis] in sizes:
            return func(**named | {"n": 2 * self.tokens}).narrow(axis, 0, self.tokens)
        return func(*args, **kwargs)


def held_choices(recording: RecordedStream, steps: int) -> Held | None:
    """Return the computation of further passes that holds choices among `steps` tokens, as of a router, or None if there are none."""
    held = Held(CHOICES, steps)
    run_through(recording.examined.model, recording.examined.arguments, recording.flow, Edits(compute=held))
    held.place = 0
    return held if held.names else None


def count_sides(value: Any, size: int) -> int:
    """Return how many axes of the first tensor of a value have this size."""
    return next((list(tensor.shape).count(size) for _, tensor in tensors_in(value)), 0)


def causal_without(recording: RecordedStream, names: frozenset[str]) -> list[str]:
    """Return the names of operations over tokens without whose changes no branch reads ahead, and some read back; or an empty list."""
    flow, model, arguments = recording.flow, recording.examined.model, recording.examined.arguments
    held = Held(names, recording.report.tokens)
    trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
    try:
        run_through(model, arguments, flow, Edits(edit=trial.keep, join=trial.keep_part, compute=held))
        for trial.part in PLACES if held.names else ():
            held.place, trial.moved, trial.following = 0, set(), set()
            edits = Edits(edit=trial.compare, enter=trial.enter, join=trial.compare_part, compute=held, partial=True)
            run_through(model, arguments, flow, edits)
    except (*FAILURES, RankfallError):
        return []
    ways = [directions(result, flow.layout) for result in trial.results.values()]
    causal = any(later for later, *_ in ways) and not any(earlier for _, earlier, *_ in ways)
    return list(dict.fromkeys(held.names)) if causal else []
