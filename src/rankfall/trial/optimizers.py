"""Try optimisers and schedules: compare steps of all members at once with steps of a member alone and with steps from checkpoints."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankfall.random_streams import stream
from rankfall.train.members import ParameterEntry
from rankfall.trial.candidate import Candidate
from rankfall.trial.independence import AGREE, LARGE, MEMBER, Axis, check_independent, difference
from rankfall.trial.setting import MEMBERS, Surroundings

ENTRIES = (
    ParameterEntry("map.weight", "mlp", "weight", (2, 3), 0),
    ParameterEntry("map.bias", "mlp", "bias", (1,), 6),
)
PARAMETERS = 7  # numbers of a member in ENTRIES
STEPS = 3  # enough for slots to matter
RATES, DECAYS = (0.1, 0.0, 0.01), (0.1, 0.1, 0.0)  # learning rate and weight decay of each member
STOPPED = 1  # a member whose learning rate and gradients are zero
ALL = range(MEMBERS)


def optimizer(candidate: Candidate, setting: Surroundings) -> None:
    """Raise `Refused` unless an optimiser resumes, moves weights, leaves stopped members alone and treats members independently."""
    start, whole = normal_numbers("weights", 0), take_steps(candidate, ALL)
    if difference([take_steps(candidate, ALL, resumed=True)], [whole]) > AGREE:
        raise candidate.refusal(
            "goes on elsewhere when it is made again and given the same weights and slots",
            "keep what lasts in `slots`, so that training can go on from a checkpoint, draw nothing, and leave lr and decay as they are",
        )
    if torch.equal(whole[0], start[0]):
        raise candidate.refusal("leaves the weights as they are", "`step` changes `weights` in place")
    if not torch.equal(whole[STOPPED], start[STOPPED]):
        raise candidate.refusal(
            "moves a member whose learning rate and gradient are zero, which has stopped",
            "every change must be in proportion to `lr`",
        )

    def compute(axis: Axis, alone: bool) -> list[Tensor]:
        return [take_steps(candidate, ALL[-1:]) if alone else take_steps(candidate, ALL, LARGE)]

    check_independent(candidate, MEMBER, compute, "gradients")


def make_optimizer(candidate: Candidate) -> Any:
    """Return the optimiser for ENTRIES as `Members` makes it."""
    instance = candidate.bind_options()
    return candidate.call(instance.of, "given the entries of a row", ENTRIES) if hasattr(instance, "of") else instance


def normal_numbers(name: str, step: int) -> Tensor:
    """Return normal numbers (K, P)."""
    return torch.from_numpy(stream(step, "trial", name).normal(size=(MEMBERS, PARAMETERS)))


def take_steps(candidate: Candidate, members: Sequence[int], factor: float = 1.0, resumed: bool = False) -> Tensor:
    """Return the weights (K, P) of these members after STEPS steps with weight decay.

    The gradients of the first member are `factor` times as large. If `resumed`, each step has a new optimiser, as after a checkpoint."""
    rows = list(members)
    weights, slots = normal_numbers("weights", 0)[rows], None
    for step in range(1, STEPS + 1):
        if resumed or step == 1:
            instance = make_optimizer(candidate)
            # (K, 1)
            lr, decay = (torch.tensor(r, dtype=torch.float64).unsqueeze(1)[rows] for r in (RATES, DECAYS))
            slots = slots or tuple(torch.zeros_like(weights) for _ in range(instance.slots))
        grads = normal_numbers("gradients", step)
        grads[STOPPED] = 0.0
        grads = grads[rows]
        grads[0] *= factor
        when = "given weights, gradients, slots, lr, decay, step and scratch"
        with torch.no_grad():
            candidate.call(instance.step, when, weights, grads, slots, lr, decay, step, torch.empty_like(weights))
    return weights


def schedule(candidate: Candidate, setting: Surroundings) -> None:
    """Raise `Refused` if a schedule gives two factors for an epoch."""
    function, epochs = candidate.bind_options(), setting.epochs
    for epoch in sorted({0, 1, epochs // 2, epochs - 1} & set(range(epochs))):
        when = f"given epoch {epoch} of {epochs}"
        first, again = (candidate.call(function, when, epoch, epochs) for _ in range(2))
        if first != again:
            raise candidate.refusal(f"gives another result when called again, {when}", "keep nothing between calls")
