"""The reference for the machine: the same step by autograd, on temporary networks."""

from dataclasses import replace

from torch import Tensor

from rankfall.design import Architecture, Training
from rankfall.nets.dropout import no_dropout
from rankfall.nets.network import Shape
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Samples

Result = tuple[Graded, Tensor]  # result and gradients (K, P)


def initial(architecture: Architecture, shape: Shape, training: Training, batch: Samples) -> Members:
    return recipe.initial(architecture, shape, batch.seeds, [training] * len(batch.seeds), batch.inputs.device)


def by_autograd(members: Members, training: Training, batch: Samples, step: int) -> Result:
    """Return the result and the gradients of a step, at this step of dropout."""
    drop = members.dropout.at(step) if members.dropout else no_dropout
    graded = recipe.objective(training)(members.module, batch, drop)
    members.differentiate(graded.loss)
    return replace(graded, loss=graded.loss.detach()), members.grads.clone()


def to_double(batch: Samples) -> Samples:
    """Return the batch in float64."""
    inputs, targets = (x.double() if x.is_floating_point() else x for x in (batch.inputs, batch.targets))
    return replace(batch, inputs=inputs, targets=inputs if batch.targets is batch.inputs else targets)
