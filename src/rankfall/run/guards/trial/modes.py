"""A module is tried in training mode too: networks are always in evaluation mode, in training as well, so that it must make no difference.

Else `nn.Dropout` would drop nothing, and a running mean would never be updated, without a word.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rankfall.run.guards.trial.watch import find_change, memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankfall.run.guards.trial.maps import Trial, Use

MODAL = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
REMEDY = "do without: what drops is the training's `dropout`, which reaches attentions and blocks as `drop`, and nothing may outlast a call"


def check_modes(trial: "Trial", call: "Use", whole: "Sequence[Tensor]") -> None:
    """Raise `Refused` if the module, which is in evaluation mode and gave `whole`, does anything else in training mode."""
    from rankfall.run.guards.trial.maps import AGREE, difference

    made, candidate = trial.whole, trial.candidate
    if not isinstance(made, nn.Module):
        return
    always = "networks are always in evaluation mode"
    for name, part in made.named_modules():
        if isinstance(part, MODAL) and getattr(part, "p", True):
            raise candidate.refusal(
                f"has a torch.nn.{type(part).__name__}, {name}, which does nothing: {always}", REMEDY
            )
    remembered = memory(candidate, made)
    made.train()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            got = trial.run(call, made, [value.clone() for value in call.inputs])
    finally:
        made.eval()
    kept = find_change(remembered, memory(candidate, made))
    if kept:
        raise candidate.refusal(f"changes its {kept} in training mode alone: {always}", REMEDY)
    if difference(got, whole) > AGREE:
        raise candidate.refusal(f"gives something else in training mode, given {call.told}: {always}", REMEDY)
