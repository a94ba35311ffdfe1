"""Checks that a component has no side effects: on global random generators, and on anything in which it could store state."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from rankfall.run.guards.trial.candidate import Candidate
from rankfall.run.guards.trial.state import StateReader

HOLDS = ("_parameters", "_buffers", "_modules")  # attributes of torch's modules that have places of their own


@contextmanager
def global_random_numbers(candidate: Candidate) -> Iterator[None]:
    """Refuse a component that draws from Python's, NumPy's or torch's global generator; the generators are restored afterwards."""
    python, numbers, tensors = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    try:
        yield
        after = np.random.get_state(legacy=False)
        drawn = {
            "Python's": random.getstate() != python,
            "NumPy's": not _equal(after, numbers),
            "torch's": not torch.equal(torch.get_rng_state(), tensors),
        }
        used = [whose for whose, changed in drawn.items() if changed]
        if used:
            raise candidate.refusal(
                f"draws from {' and '.join(used)} global random numbers",
                "what is random must come from the generator that is passed in, or be drawn by `init`",
            )
    finally:
        random.setstate(python)
        np.random.set_state(numbers)
        torch.set_rng_state(tensors)


def memory(candidate: Candidate, made: Any) -> dict[str, Any]:
    """Everything that a call could change: parameters, buffers, attributes, and the globals of its file and of its author's others."""
    assert candidate.location is not None
    whose = "attribute of its class" if isinstance(candidate.found, type) else "attribute"
    places = {whose: {name: value for name, value in vars(candidate.found).items() if not name.startswith("__")}}
    if isinstance(made, nn.Module):
        for name, part in made.named_modules():
            held = vars(part)
            places[f"attribute {name}".strip()] = {one: value for one, value in held.items() if one not in HOLDS}
            places[f"parameter {name}".strip()] = held["_parameters"]
            places[f"buffer {name}".strip()] = held["_buffers"]
    elif hasattr(made, "__dict__"):
        places["attribute of it"] = vars(made)
    return StateReader(candidate.location.module).of(places)


def find_change(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The first thing that is no longer what it was, or nothing. What is new may be a table kept for the next call."""
    return next((name for name, value in before.items() if name in after and not _equal(value, after[name])), "")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor | np.ndarray):
        if type(one) is not type(other) or one.shape != other.shape:
            return False
        same: Any = (one == other) | (one != one) & (other != other)
        return bool(same.all())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other or (one != one and other != other))
