"""How a task is tried: its data are drawn twice from one seed, and must be what networks and losses are made for."""

import math

import torch
from torch import Tensor

from rankfall.tasks._dataset import Dataset, draw
from rankfall.trial.candidate import Candidate
from rankfall.trial.setting import Setting

PARTS = ("train_inputs", "train_targets", "test_inputs", "test_targets")


def task(candidate: Candidate, setting: Setting) -> None:
    first, again = (candidate.call(draw, "drawing", candidate.found, 0, candidate.component.options) for _ in range(2))
    for made in (first, again):
        if not isinstance(made, Dataset):
            raise candidate.refused(f"returns a {type(made).__name__}", "it must return a Dataset of rankfall.tasks")
    for part in PARTS:
        check(candidate, first, part)
    for split in ("train", "test"):
        inputs, targets = getattr(first, f"{split}_inputs"), getattr(first, f"{split}_targets")
        if inputs.shape[:2] != targets.shape[:2] or inputs.shape[1] != first.length:
            what = f"has {split} inputs {tuple(inputs.shape)} and targets {tuple(targets.shape)}"
            raise candidate.refused(what, f"both need as many samples, and all have {first.length} tokens")
    if not isinstance(first.chance, int | float) or not (math.isnan(first.chance) or 0 <= first.chance <= 1):
        raise candidate.refused(
            f"says chance = {first.chance}", "it is a share of right answers, or NaN if none is right"
        )
    for part in PARTS:
        if not torch.equal(getattr(first, part), getattr(again, part)):
            what = f"draws other {part} when it is given the same generator again"
            raise candidate.refused(what, "draw from the `rng` that it is given, and keep nothing between calls")


def check(candidate: Candidate, made: Dataset, part: str) -> None:
    """One tensor: symbols or classes in range (N, T), or finite vectors or values (N, T, C)."""
    value, asks = getattr(made, part), part.endswith("targets")
    fact, size = ("TARGETS", "size_out") if asks else ("INPUTS", "size_in")
    declared, most = candidate.facts.get(fact), getattr(made, size)
    if not isinstance(value, Tensor) or len(value) == 0:
        raise candidate.refused(f"makes no {part}", "it must be a tensor with samples on its first axis")
    shape = tuple(value.shape)
    if declared in ("tokens", "classes"):
        if value.dim() != 2 or value.dtype != torch.int64:
            raise candidate.refused(
                f"says {fact} = {declared!r}, but its {part} are {shape} of {value.dtype}",
                "they must be (N, T) of int64",
            )
        low, high, least = int(value.min()), int(value.max()), -1 if asks else 0
        if low < least or high >= most:
            raise candidate.refused(
                f"has {part} from {low} to {high} with {size} = {most}",
                f"they must lie in {least} .. {most - 1}" + (", -1 where nothing is asked" if asks else ""),
            )
        return
    if value.dim() != 3 or not value.is_floating_point() or shape[2] != most:
        raise candidate.refused(
            f"says {fact} = {declared!r} and {size} = {most}, but its {part} are {shape} of {value.dtype}",
            "they must be floating-point numbers (N, T, C) with as many channels",
        )
    if not value.isfinite().all():
        raise candidate.refused(f"has {part} that are not finite", "every value must be a number")
