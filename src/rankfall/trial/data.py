"""How a task is tried: its data are drawn twice from one seed, and must be what networks and losses are made for. A job has drawn them
once in any case, or has them from the store, so that the trial costs one draw.
"""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall.tasks._dataset import Dataset, draw, draw_fresh
from rankfall.trial.candidate import Candidate
from rankfall.trial.setting import SAMPLES, Surroundings


def task(candidate: Candidate, setting: Surroundings) -> None:
    made = candidate.bound()
    known = candidate.drawn
    seed = 0 if known is None else known[1]
    first: Any = known[0] if known is not None else candidate.call(draw, "drawing", made, seed)
    again: Any = candidate.call(draw, "drawing", made, seed)
    for drawn in (first, again):
        if not isinstance(drawn, Dataset):
            raise candidate.refusal(f"returns a {type(drawn).__name__}", "it must return a Dataset of rankfall.tasks")
    for split in sorted({"train", "test"} - first.splits.keys()):
        raise candidate.refusal(f"has no split {split!r}", "its `splits` must hold train and test")
    for name, split in first.splits.items():
        check(candidate, first, f"{name} inputs", split.inputs)
        check(candidate, first, f"{name} targets", split.targets)
        if split.inputs.shape[:2] != split.targets.shape[:2]:
            what = f"has {name} inputs {tuple(split.inputs.shape)} and targets {tuple(split.targets.shape)}"
            raise candidate.refusal(what, "both need as many samples, and as many tokens")
    if first.test.inputs.shape[1] != first.length:
        what = f"has test inputs {tuple(first.test.inputs.shape)}"
        raise candidate.refusal(what, f"they have the length of the train inputs, {first.length}; name another split")
    hides = candidate.facts.get("TARGETS") == "hidden"
    if hides and not 0 < first.special < first.size_in:
        what = f"says TARGETS = 'hidden', but special = {first.special} of {first.size_in} symbols"
        raise candidate.refusal(what, "the last of the special symbols is what hides a token")
    if not isinstance(first.chance, int | float) or not (math.isnan(first.chance) or 0 <= first.chance <= 1):
        raise candidate.refusal(
            f"says chance = {first.chance}", "it is a share of right answers, or NaN if none is right"
        )
    for name, split in first.splits.items():
        for part in ("inputs", "targets"):
            if name not in again.splits or not are_alike(getattr(split, part), getattr(again.splits[name], part)):
                what = f"draws other {name} {part} when it is given the same generator again"
                raise candidate.refusal(what, "draw from the `rng` that it is given, and keep nothing between calls")
    if callable(getattr(made, "batch", None)):
        endless(candidate, made, first)


def endless(candidate: Candidate, made: Any, like: Dataset) -> None:
    """Batches without end: as many samples as asked, of the kind of the data set, the same for the same generator."""
    drawn = []
    for _ in range(2):
        found = candidate.call(draw_fresh, "drawing a batch", made, 0, 0, SAMPLES)
        for part in ("inputs", "targets"):
            value = getattr(found, part)
            check(candidate, like, f"fresh {part}", value)
            if value.shape != (SAMPLES, *getattr(like.train, part).shape[1:]):
                what = f"draws {part} {tuple(value.shape)} where {SAMPLES} samples are asked for"
                raise candidate.refusal(what, "`batch(rng, samples)` returns inputs and targets as in the train split")
        drawn.append(found)
    if not torch.equal(drawn[0].inputs, drawn[1].inputs) or not torch.equal(drawn[0].targets, drawn[1].targets):
        what = "draws another batch when it is given the same generator again"
        raise candidate.refusal(what, "draw from the `rng` that it is given, and keep nothing between calls")


def are_alike(one: Tensor, other: Tensor) -> bool:
    """The same data; another machine, which may have drawn those in the store, may round otherwise."""
    if one.shape != other.shape or one.dtype != other.dtype or not one.is_floating_point():
        return torch.equal(one, other)
    return torch.allclose(one, other, rtol=1e-5, atol=1e-5)


def check(candidate: Candidate, made: Dataset, part: str, value: Tensor) -> None:
    """One tensor: symbols or classes in range (N, T), or finite vectors or values (N, T, C)."""
    asks = part.endswith("targets")
    fact, size = ("TARGETS", "size_out") if asks else ("INPUTS", "size_in")
    declared, most = candidate.facts.get(fact), getattr(made, size)
    if not isinstance(value, Tensor) or len(value) == 0:
        raise candidate.refusal(f"makes no {part}", "it must be a tensor with samples on its first axis")
    shape = tuple(value.shape)
    if declared in ("tokens", "classes", "hidden"):
        if value.dim() != 2 or value.dtype != torch.int64:
            raise candidate.refusal(
                f"says {fact} = {declared!r}, but its {part} are {shape} of {value.dtype}",
                "they must be (N, T) of int64",
            )
        low, high, least = int(value.min()), int(value.max()), -1 if asks else 0
        if low < least or high >= most:
            raise candidate.refusal(
                f"has {part} from {low} to {high} with {size} = {most}",
                f"they must lie in {least} .. {most - 1}" + (", -1 where nothing is asked" if asks else ""),
            )
        return
    if value.dim() != 3 or not value.is_floating_point() or shape[2] != most:
        raise candidate.refusal(
            f"says {fact} = {declared!r} and {size} = {most}, but its {part} are {shape} of {value.dtype}",
            "they must be floating-point numbers (N, T, C) with as many channels",
        )
    if not value.isfinite().all():
        raise candidate.refusal(f"has {part} that are not finite", "every value must be a number")
