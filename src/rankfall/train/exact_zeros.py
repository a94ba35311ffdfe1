"""Gradients that cancel exactly: 0 by autograd, and what rounding leaves of them by the kernels, which Adam makes whole steps of.

Where the tokens of a sample are each other's negatives, terms of a bias's gradient are so too, and added up as autograd adds them they
leave 0. The kernels merge additions with multiplications and leave 1e-8 of them, and Adam divides a gradient by its own size. A task says
by SYMMETRIC that its data are like that; `remainder` finds a task that does not say so, on the first batch of one member.

It looks at whole parameters, since a single number may be 0 by chance or be used by no sample. A parameter is found if its gradient

- is 0 by autograd, and not 0 by the kernels, but large enough for Adam's eps to make a step of it;
- is 0 in float64 as well, up to rounding there: what is 0 in float32 by chance, or too small for it, is not;
- is more than such rounding when inputs and targets are drawn anew, each token from all tokens of the batch. What is 0 then too is so
  by the network, for any data: behind layers that have made all tokens alike, behind a norm of one feature, where attention sees one
  token.

The bias of keys is left out: it shifts all scores of a query alike, so its gradient is only what rounding leaves with either engine, and
may be 0 by chance.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rankfall.design import Architecture, Training
from rankfall.nets.dropout import no_dropout
from rankfall.nets.network import Shape
from rankfall.streams import stream
from rankfall.train import recipe
from rankfall.train.machine.engine import Machined
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

WITHOUT_EFFECT = "attention.key.bias"
STEP = 1e-4  # share of a whole step that Adam must make of a remainder, g / (g + eps)
ROUNDING = (
    1e-5  # of a remainder in float32: float64 leaves 2e-9 of it, and data that are symmetric but for rounding 1e-8
)


@dataclass(frozen=True)
class Remainder:
    """The largest number of the kernels' gradient of a parameter whose gradient is 0."""

    parameter: str
    value: float


def remainder(architecture: Architecture, shape: Shape, training: Training, batch: Samples) -> Remainder | None:
    """The first parameter of which the machine leaves such a remainder. The batch is of one member, whose network is made here
    and thrown away: nothing of the training that is to come is touched."""
    members = make_member(architecture, shape, training, batch)
    eps = getattr(members.optimizer, "eps", None)
    if eps is None:  # a step as small as its gradient
        return None
    names = [name for name, size in sizes(members, by_autograd(members, training, batch)).items() if size == 0]
    if not names:
        return None
    double = make_member(architecture, shape, replace(training, dtype="float64"), batch)
    double.weights.copy_(members.weights)
    left = sizes(members, by_kernels(members, architecture, shape, training, batch))
    names = [name for name in names if left[name] > STEP * eps]
    if not names:
        return None
    exact, other = (sizes(double, by_autograd(double, training, to_double(one))) for one in (batch, mix_batch(batch)))
    names = [name for name in names if exact[name] < ROUNDING * left[name] < other[name]]
    return Remainder(names[0], left[names[0]]) if names else None


def make_member(architecture: Architecture, shape: Shape, training: Training, batch: Samples) -> Members:
    return recipe.initial(architecture, shape, batch.seeds, [training], batch.inputs.device)


def by_autograd(members: Members, training: Training, batch: Samples) -> Tensor:
    """The gradient (P,) of the first step."""
    drop = members.dropout.at(0) if members.dropout else no_dropout
    members.differentiate(recipe.objective(training)(members.module, batch, drop).loss)
    return members.grads[0]


def by_kernels(
    members: Members, architecture: Architecture, shape: Shape, training: Training, batch: Samples
) -> Tensor:
    Machined(members, architecture, shape, training).passes(members, batch)
    return members.grads[0]


def sizes(members: Members, gradient: Tensor) -> dict[str, float]:
    """The size of the largest number of each parameter's gradient, from that of all (P,)."""
    each = zip(members.layout, gradient.split([value[0].numel() for value in members.parameters]))
    return {name: float(part.abs().max()) for name, part in each if not name.endswith(WITHOUT_EFFECT)}


def mix_batch(batch: Samples) -> Samples:
    """Every token and every target drawn from all of the batch: of the same sizes, but no longer each other's negatives or alike."""
    rng = stream(batch.seeds[0], "exact zeros")

    def draw(values: Tensor) -> Tensor:
        """(1, B, T) or (1, B, T, C); places where nothing is asked stay."""
        asked = torch.ones_like(values, dtype=torch.bool) if values.dim() > 3 else values != -1
        flat = values[asked].view(-1, *values.shape[3:])
        made = values.clone()
        made[asked] = flat[torch.from_numpy(rng.integers(len(flat), size=len(flat)))].flatten()
        return made

    inputs = draw(batch.inputs)
    return replace(batch, inputs=inputs, targets=inputs if batch.targets is batch.inputs else draw(batch.targets))


def to_double(batch: Samples) -> Samples:
    given = [values.double() if values.is_floating_point() else values for values in (batch.inputs, batch.targets)]
    same = batch.targets is batch.inputs
    return replace(batch, inputs=given[0], targets=given[0] if same else given[1])
