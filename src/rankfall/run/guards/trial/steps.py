"""Objectives and optimisers tried at many steps: what mixes members, or begins to keep something, may do so from some step on.

The first steps, every tenth of the first hundred, powers of two, and the last of the training that they are for. Tried once, where the rest
of a trial is repeated with other options and in other processes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rankfall.run.guards.trial.candidate import Candidate
from rankfall.run.guards.trial.grading import grade, targets_of
from rankfall.run.guards.trial.maps import AGREE, difference
from rankfall.run.guards.trial.setting import MEMBERS, Surroundings
from rankfall.run.guards.trial.training import numbers, optimizer_of, take_steps
from rankfall.run.guards.trial.watch import find_change, global_random_numbers, memory

EVERY, TENTHS, LARGEST = 24, 100, 2**20
LAST = 3  # steps of the training


def times(steps: int) -> list[int]:
    """Steps from 1 on, of a training of so many; 0: of one that is not known."""
    powers = [2**k for k in range(LARGEST.bit_length()) if 2**k > EVERY]
    return sorted(
        {*range(1, EVERY + 1), *range(10, TENTHS + 1, 10), *powers, *range(max(1, steps - LAST + 1), steps + 1)}
    )


def optimizer(candidate: Candidate, setting: Surroundings) -> None:
    made = optimizer_of(candidate)
    slots, at = made.slots, times(setting.steps)
    check_kept(candidate, made, slots, at)
    state, others = initial_rows(slots), optimizer_of(candidate)
    singles = [tuple(value[[member]] for value in state) for member in range(MEMBERS)]
    for step in at:
        take_steps(candidate, made, slots, range(MEMBERS), times=[step], at=state)
        for member, single in enumerate(singles):
            take_steps(candidate, others, slots, [member], times=[step], at=single)
            if (off := difference(single, [value[[member]] for value in state])) > AGREE:
                raise candidate.refusal(
                    f"mixes the members of a stack: at step {step} member {member} of {MEMBERS} differs by {off:.1e} from what it is alone",
                    "no operation may run over the first axis, K, or depend on its length",
                )
    resumed, half = initial_rows(slots), len(at) // 2
    for part in (at[:half], at[half:]):  # another object each, as from a checkpoint
        take_steps(candidate, optimizer_of(candidate), slots, range(MEMBERS), times=part, at=resumed)
    if difference(resumed, state) > AGREE:
        raise candidate.refusal(
            "goes on elsewhere when it is made again and given the same weights and slots",
            "keep what lasts in `slots`, so that training can go on from a checkpoint",
        )


def check_kept(candidate: Candidate, made: Any, slots: int, at: Sequence[int]) -> None:
    """Raise if anything but its slots is other than before, when steps were taken, or when they are taken with other gradients."""
    own = set(getattr(made, "__dict__", ()))
    remembered: dict[str, Any] = {}
    for factor in (1.0, 2.0):
        take_steps(candidate, made, slots, range(MEMBERS), factor=factor, times=at)
        new = sorted(set(getattr(made, "__dict__", ())) - own)
        kept = find_change(remembered, now := memory(candidate, made))
        if new or kept:
            what = f"its {kept} changed" if kept else f"it has a new attribute {new[0]!r}"
            raise candidate.refusal(f"keeps state outside of its slots: {what} in {at[-1]} steps", "keep it in `slots`")
        remembered = now


def initial_rows(slots: int) -> tuple[Tensor, ...]:
    """Weights and slots (K, P) before the first step."""
    weights = numbers("weights", 0)
    return weights, *(torch.zeros_like(weights) for _ in range(slots))


def objective(candidate: Candidate, setting: Surroundings) -> None:
    targets = targets_of(candidate)
    remembered = memory(candidate, None)
    for step in (0, *times(setting.steps)):
        member, place = step % MEMBERS, ("train", step)
        whole = grade(candidate, targets, range(MEMBERS), place=place)
        alone = grade(candidate, targets, [member], place=place)
        for name, value in whole.items():
            if (off := difference([alone[name]], [value[[member]]])) > AGREE:
                raise candidate.refusal(
                    f"mixes the members of a stack: {name} of member {member} at step {step} differs by {off:.1e} from what it is alone",
                    "each member's share must follow from its own outputs, targets and seed",
                )
    if kept := find_change(remembered, memory(candidate, None)):
        raise candidate.refusal(f"keeps state between calls: its {kept} changed", "let nothing outlast a call")


TRIED: Mapping[str, Callable[[Candidate, Surroundings], Any]] = {"objective": objective, "optimizer": optimizer}


def try_steps(candidate: Candidate, setting: Surroundings) -> None:
    """Raise `Refused` if a component that has passed its trial does otherwise at some step."""
    if candidate.kind in TRIED:
        with global_random_numbers(candidate):
            TRIED[candidate.kind](candidate, setting)
