"""How optimisers and schedules are tried: two steps for all members at once, against each member alone."""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall.streams import stream
from rankfall.trial.candidate import Candidate
from rankfall.trial.maps import AGREE, difference
from rankfall.trial.setting import MEMBERS, Setting
from rankfall.trial.watch import changed, memory

PARAMETERS = 7  # of a member
STEPS = 3
STILL = MEMBERS - 1  # a member that has stopped: its learning rate and gradients are zero


def optimizer(candidate: Candidate, setting: Setting) -> None:
    made = candidate.bound()
    slots = getattr(made, "slots", None)
    if type(slots) is not int or slots < 0 or not callable(getattr(made, "step", None)):
        raise candidate.refused("has no number of `slots` or no `step`", f"write {candidate.contract}")
    start = numbers("weights", 0)
    whole = steps(candidate, made, slots, range(MEMBERS))
    remembered = memory(candidate, made)
    again = steps(candidate, made, slots, range(MEMBERS))
    kept = changed(remembered, memory(candidate, made))
    if kept:
        raise candidate.refused(f"keeps state outside of its slots: its {kept} changed", "keep it in `slots`")
    if not whole.isfinite().all():
        raise candidate.refused("makes weights that are not finite", "every step must give numbers")
    if difference([again], [whole]) > AGREE:
        raise candidate.refused(
            "steps elsewhere when it starts again from the same weights and slots",
            "keep what lasts in `slots`, so that training can go on from a checkpoint",
        )
    if torch.equal(whole[:STILL], start[:STILL]):
        raise candidate.refused("leaves the weights as they are", "`step` changes `weights` in place")
    if not torch.equal(whole[STILL], start[STILL]):
        raise candidate.refused(
            "moves a member whose learning rate and gradient are zero, which has stopped",
            "every change must be in proportion to `lr`",
        )
    for member in range(MEMBERS):
        alone = steps(candidate, made, slots, [member])
        if (off := difference([alone], [whole[member : member + 1]])) > AGREE:
            raise candidate.refused(
                f"mixes the members of a stack: member {member} of {MEMBERS} differs by {off:.1e} from what it is alone",
                "no operation may run over the first axis, K, or depend on its length",
            )


def numbers(name: str, step: int) -> Tensor:
    return torch.from_numpy(stream(step, "trial", name).normal(size=(MEMBERS, PARAMETERS)))


def steps(candidate: Candidate, made: Any, slots: int, members: Any) -> Tensor:
    """The weights (K, P) of these members after some steps with weight decay, each at its own learning rate."""
    rows = list(members)
    weights = numbers("weights", 0)[rows]
    kept = tuple(torch.zeros_like(weights) for _ in range(slots))
    lr = torch.tensor([0.1, 0.01, 0.0], dtype=torch.float64).unsqueeze(1)[rows]  # (K, 1)
    decay = torch.tensor([0.1, 0.0, 0.1], dtype=torch.float64).unsqueeze(1)[rows]
    for step in range(1, STEPS + 1):
        grads = (numbers("gradients", step) * (torch.arange(MEMBERS) != STILL).unsqueeze(1))[rows]
        told = "given weights, gradients, slots, lr, decay, step and scratch"
        with torch.no_grad():
            candidate.call(made.step, told, weights, grads, kept, lr, decay, step, torch.empty_like(weights))
    return weights


def schedule(candidate: Candidate, setting: Setting) -> None:
    function, epochs = candidate.bound(), setting.epochs
    for epoch in sorted({0, 1, epochs // 2, epochs - 1} & set(range(epochs))):
        told = f"given epoch {epoch} of {epochs}"
        first, again = (candidate.call(function, told, epoch, epochs) for _ in range(2))
        if not isinstance(first, int | float) or not math.isfinite(first):
            raise candidate.refused(f"returns {str(first)[:40]} {told}", "it must return a finite number")
        if first != again:
            raise candidate.refused(f"gives another result when called again, {told}", "keep nothing between calls")
