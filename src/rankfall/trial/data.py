"""Try a task: draw its data twice from one seed, and check that they fit networks and losses.

The first draw comes from the job or the store, so that the trial costs one draw.
"""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall.tasks._dataset import Dataset, Split, draw, draw_fresh
from rankfall.trial.candidate import SAMPLES, Candidate, Surroundings

PARTS = ("inputs", "targets")


def task(candidate: Candidate, setting: Surroundings) -> None:
    """Raise `Refused` if the data of a task do not fit, or differ between two draws from one seed."""
    instance = candidate.bind_options()
    stored, seed = candidate.drawn or (None, 0)
    first: Any = candidate.call(draw, "drawing", instance, seed) if stored is None else stored
    again: Any = candidate.call(draw, "drawing", instance, seed)
    for name, split in first.splits.items():
        check_split(candidate, first, name, split)
    if first.test.inputs.shape[1] != first.length:
        fault = f"has test inputs {tuple(first.test.inputs.shape)}"
        raise candidate.refusal(fault, f"they have the length of the train inputs, {first.length}; name another split")
    for name, split in first.splits.items():
        check_same(candidate, name, split, again.splits.get(name))
    if callable(getattr(instance, "batch", None)):
        check_fresh(candidate, instance, first)


def check_same(candidate: Candidate, name: str, split: Split, again: Split | None) -> None:
    """Raise `Refused` if a second draw of a split differs from the first."""
    for part in PARTS:
        if again is None or not are_alike(getattr(split, part), getattr(again, part)):
            fault = f"draws other {name} {part} when it is given the same generator again"
            raise candidate.refusal(fault, "draw from the `rng` that it is given, and keep nothing between calls")


def are_alike(first: Tensor, second: Tensor) -> bool:
    """Compare data up to rounding: data in the store may come from another machine, which rounds otherwise."""
    if first.shape != second.shape or first.dtype != second.dtype or not first.is_floating_point():
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=1e-5, atol=1e-5)


def check_fresh(candidate: Candidate, instance: Any, dataset: Dataset) -> None:
    """Check batches without end: the requested number of samples, like those of the train split, and the same for the same generator."""
    first, again = (candidate.call(draw_fresh, "drawing a batch", instance, 0, 0, SAMPLES) for _ in range(2))
    check_split(candidate, dataset, "fresh", first)
    for part in PARTS:
        shape = tuple(getattr(first, part).shape)
        if shape != (SAMPLES, *getattr(dataset.train, part).shape[1:]):
            fault = f"draws {part} {shape} where {SAMPLES} samples are asked for"
            raise candidate.refusal(fault, "`batch(rng, samples)` returns inputs and targets as in the train split")
    check_same(candidate, "fresh", first, again)


def check_split(candidate: Candidate, dataset: Dataset, name: str, split: Split) -> None:
    """Raise `Refused` unless each part is symbols or classes in range (N, T), or finite vectors or values (N, T, C)."""
    if not len(split.inputs):
        raise candidate.refusal(f"has no samples in its split {name}", "draw at least one sample for each split")
    for part, fact, size, least in zip(PARTS, ("INPUTS", "TARGETS"), ("size_in", "size_out"), (0, -1)):
        value, most, declared = getattr(split, part), getattr(dataset, size), candidate.facts.get(fact)
        description = f"its {name} {part} are {tuple(value.shape)} of {value.dtype}"
        if declared in ("tokens", "classes", "hidden"):
            if value.dim() != 2 or value.dtype != torch.int64:
                fault = f"says {fact} = {declared!r}, but {description}"
                raise candidate.refusal(fault, "they must be (N, T) of int64")
        elif value.dim() != 3 or not value.is_floating_point() or value.shape[2] != most:
            fault = f"says {fact} = {declared!r} and {size} = {most}, but {description}"
            raise candidate.refusal(fault, "they must be floating-point numbers (N, T, C) with as many channels")
        if outside := find_outside(value, least, most, size):
            raise candidate.refusal(f"has {name} {part} {outside[0]}", outside[1])
    if split.inputs.shape[:2] != split.targets.shape[:2]:
        fault = f"has {name} inputs {tuple(split.inputs.shape)} and targets {tuple(split.targets.shape)}"
        raise candidate.refusal(fault, "both need as many samples, and as many tokens")


def find_outside(values: Tensor, least: int, most: int, size: str) -> tuple[str, str] | None:
    """Return fault and fix of symbols outside least .. most - 1, or of numbers that are not finite; None if there are none."""
    low, high = (float(end) for end in values.aminmax())
    if values.is_floating_point():
        if math.isfinite(low) and math.isfinite(high):  # NaN makes both ends NaN
            return None
        return "that are not finite", "every value must be a number"
    if low >= least and high < most:
        return None
    note = ", -1 where nothing is asked" if least < 0 else ""
    fault = f"from {low:.0f} to {high:.0f} with {size} = {most}"
    return fault, f"they must lie in {least} .. {most - 1}{note}"
