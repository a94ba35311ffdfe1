"""How objectives, optimisers and schedules are tried: a batch or some steps for all members at once, against each member alone."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from rankfall.streams import stream
from rankfall.train.members import ParameterEntry
from rankfall.trial.candidate import Candidate
from rankfall.trial.extremes import AGREE, LARGE, TOLD, difference
from rankfall.trial.grading import check_sums, grade, targets_of
from rankfall.trial.setting import MEMBERS, Surroundings

PARAMETERS = 7  # of a member
ROW = (
    ParameterEntry("map.weight", "mlp", "weight", (2, 3), 0),
    ParameterEntry("map.bias", "mlp", "bias", (1,), 6),
)  # what they are
STEPS = 3
STILL = MEMBERS - 1  # a member that has stopped: its learning rate and gradients are zero


def optimizer(candidate: Candidate, setting: Surroundings) -> None:
    made = optimizer_of(candidate)
    slots = getattr(made, "slots", None)
    if type(slots) is not int or slots < 0 or not callable(getattr(made, "step", None)):
        raise candidate.refusal("has no number of `slots` or no `step`", f"write {candidate.contract}")
    start = numbers("weights", 0)
    whole = take_steps(candidate, made, slots, range(MEMBERS))
    again = take_steps(candidate, made, slots, range(MEMBERS))
    if not whole.isfinite().all():
        raise candidate.refusal("makes weights that are not finite", "every step must give numbers")
    if difference([again], [whole]) > AGREE:
        raise candidate.refusal(
            "steps elsewhere when it starts again from the same weights and slots",
            "keep what lasts in `slots`, so that training can go on from a checkpoint",
        )
    if difference([take_steps(candidate, None, slots, range(MEMBERS))], [whole]) > AGREE:
        raise candidate.refusal(
            "goes on elsewhere when it is made again and given the same weights and slots",
            "keep what lasts in `slots`, so that training can go on from a checkpoint",
        )
    if torch.equal(whole[:STILL], start[:STILL]):
        raise candidate.refusal("leaves the weights as they are", "`step` changes `weights` in place")
    if not torch.equal(whole[STILL], start[STILL]):
        raise candidate.refusal(
            "moves a member whose learning rate and gradient are zero, which has stopped",
            "every change must be in proportion to `lr`",
        )
    for member in range(MEMBERS):
        alone = take_steps(candidate, made, slots, [member])
        if (off := difference([alone], [whole[member : member + 1]])) > AGREE:
            raise candidate.refusal(
                f"mixes the members of a stack: member {member} of {MEMBERS} differs by {off:.1e} from what it is alone",
                "no operation may run over the first axis, K, or depend on its length",
            )

    large = take_steps(candidate, made, slots, range(MEMBERS), factor=LARGE)
    if difference([large[1:]], [whole[1:]]) > AGREE:
        raise candidate.refusal(
            f"mixes the members of a stack: where the gradients of member 0 are {TOLD}, other members change",
            "no operation, such as a maximum, may run over the first axis, K",
        )


def optimizer_of(candidate: Candidate) -> Any:
    """As `Members` has it, for a row of these parameters."""
    made = candidate.bound()
    return candidate.call(made.of, "given the entries of a row", ROW) if hasattr(made, "of") else made


def numbers(name: str, step: int) -> Tensor:
    return torch.from_numpy(stream(step, "trial", name).normal(size=(MEMBERS, PARAMETERS)))


def take_steps(
    candidate: Candidate, made: Any | None, slots: int, members: Iterable[int], factor: float = 1.0
) -> Tensor:
    """The weights (K, P) of these members after some steps with weight decay, each at its own learning rate; the gradients of the first
    are `factor` times as large. `made`: the optimiser; None: each step takes a new one, as training from a checkpoint does."""
    rows = list(members)
    weights = numbers("weights", 0)[rows]
    kept = tuple(torch.zeros_like(weights) for _ in range(slots))
    lr = torch.tensor([0.1, 0.01, 0.0], dtype=torch.float64).unsqueeze(1)[rows]  # (K, 1)
    decay = torch.tensor([0.1, 0.0, 0.1], dtype=torch.float64).unsqueeze(1)[rows]
    given = lr.clone(), decay.clone()
    for step in range(1, STEPS + 1):
        grads = (numbers("gradients", step) * (torch.arange(MEMBERS) != STILL).unsqueeze(1))[rows]
        grads[0] *= factor
        told = "given weights, gradients, slots, lr, decay, step and scratch"
        taker = made or optimizer_of(candidate)
        with torch.no_grad():
            candidate.call(taker.step, told, weights, grads, kept, lr, decay, step, torch.empty_like(weights))
        if not (torch.equal(lr, given[0]) and torch.equal(decay, given[1])):
            raise candidate.refusal(
                f"edits lr or decay in place, at step {step}", "write to nothing but weights, slots, grads and scratch"
            )
    return weights


def schedule(candidate: Candidate, setting: Surroundings) -> None:
    function, epochs = candidate.bound(), setting.epochs
    for epoch in sorted({0, 1, epochs // 2, epochs - 1} & set(range(epochs))):
        told = f"given epoch {epoch} of {epochs}"
        first, again = (candidate.call(function, told, epoch, epochs) for _ in range(2))
        if not isinstance(first, int | float) or not math.isfinite(first):
            raise candidate.refusal(f"returns {str(first)[:40]} {told}", "it must return a finite number")
        if first != again:
            raise candidate.refusal(f"gives another result when called again, {told}", "keep nothing between calls")


def objective(candidate: Candidate, setting: Surroundings) -> None:
    """For the targets that it says it accepts, whatever those of the cell are."""
    targets = targets_of(candidate)
    whole, rows = grade(candidate, targets, range(MEMBERS)), range(MEMBERS)
    for again in (grade(candidate, targets, rows) for _ in range(2)):
        if any(not torch.equal(whole[name], again[name]) for name in whole):
            raise candidate.refusal(
                "gives another result when called again", "draw by the batch's seeds and place alone"
            )
    for member in rows:
        alone = grade(candidate, targets, [member])
        for name, value in whole.items():
            if (off := difference([alone[name]], [value[member : member + 1]])) > AGREE:
                raise candidate.refusal(
                    f"mixes the members of a stack: {name} of member {member} differs by {off:.1e} from what it is alone",
                    "each member's share must follow from its own outputs, targets and seed",
                )
    for factor, told in ((LARGE, TOLD), (torch.inf, "infinite")):
        beside = grade(candidate, targets, rows, factor)
        for name, value in whole.items():
            for member in range(1, MEMBERS):
                if difference([beside[name][member]], [value[member]]) > AGREE:
                    raise candidate.refusal(
                        f"mixes the members of a stack: {name} of member {member} changes where the weights of member 0 are {told}",
                        "no operation, such as a maximum, may run over the first axis, K",
                    )
    check_sums(candidate, targets)
