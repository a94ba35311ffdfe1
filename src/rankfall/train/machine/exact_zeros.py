"""Gradients that cancel exactly: they are 0 by autograd, but the machine leaves a rounding error, of which Adam makes whole steps.

If the tokens of a sample are each other's negatives, so are the terms of a bias's gradient, and their sum by autograd is exactly 0. The
machine fuses additions with multiplications and leaves 1e-8 of the terms, and Adam divides a gradient by its size. A task declares such
data by SYMMETRIC. `find_remainder` finds a task that lacks the declaration, on the first batch of one member.

It checks whole parameters, since a single number may be 0 by chance or because no sample uses it. It reports a parameter whose gradient

- is 0 by autograd and not 0 by the machine, and is large enough that Adam's eps does not suppress the step;
- is also 0 in float64, up to rounding, so that it is not 0 in float32 by chance or because it is too small;
- exceeds such rounding if inputs and targets are drawn again, each token from all tokens of the batch. Otherwise the network makes it 0
  for any data: behind layers that have made all tokens alike, behind a norm of one feature, or where attention sees one token.

The bias of keys is skipped: it shifts all scores of a query alike, so its gradient is only rounding with either engine, and may be 0 by
chance.

`by_autograd` is the reference for the machine: the same step by autograd, on temporary networks.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rankfall.design import Architecture, Training
from rankfall.nets.network import Shape
from rankfall.nets.primitives import no_dropout
from rankfall.random_streams import stream
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


WITHOUT_EFFECT = "attention.key.bias"  # end of the name of a parameter that is skipped
STEP = 1e-4  # smallest relevant step of Adam along a remainder, g / (g + eps), as a fraction of a whole step
# Fraction of a remainder in float32. Float64 leaves 2e-9 of it, and data that are symmetric except for rounding 1e-8.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Remainder:
    """A parameter whose gradient is 0, and the largest number of its gradient by the machine."""

    parameter: str
    value: float


def find_remainder(
    members: Members, double: Members, training: Training, batch: Samples, machine: Result, plain: Result, exact: Result
) -> Remainder | None:
    """Return the first parameter with such a remainder.

    The results of one step are `machine`, `plain` by autograd in float32, and `exact` by autograd in float64 with the networks `double`.
    """
    eps = getattr(members.optimizer, "eps", None)
    if eps is None:  # steps are proportional to the gradient
        return None
    machine_sizes, plain_sizes = sizes(members, machine), sizes(members, plain)
    names = [name for name, size in plain_sizes.items() if size == 0 and machine_sizes[name] > STEP * eps]
    if not names:
        return None
    exact_sizes = sizes(double, exact)
    mixed = sizes(double, by_autograd(double, training, to_double(mix_batch(batch)), 0))
    names = [name for name in names if exact_sizes[name] < ROUNDING * machine_sizes[name] < mixed[name]]
    return Remainder(names[0], machine_sizes[names[0]]) if names else None


def sizes(members: Members, result: Result) -> dict[str, float]:
    """Return the largest absolute number of each parameter's gradient, for the first member."""
    gradients = zip(members.layout, result[1][0].split([value[0].numel() for value in members.parameters]))
    return {name: float(part.abs().max()) for name, part in gradients if not name.endswith(WITHOUT_EFFECT)}


def mix_batch(batch: Samples) -> Samples:
    """Draw each token and target from the whole batch. Sizes stay the same, but tokens are no longer each other's negatives or alike."""
    rng = stream(batch.seeds[0], "exact zeros")

    def draw(values: Tensor) -> Tensor:
        """Draw values (K, B, T) or (K, B, T, C). Positions without a target stay."""
        has_target = torch.ones_like(values, dtype=torch.bool) if values.dim() > 3 else values != -1
        flat = values[has_target].view(-1, *values.shape[3:])
        drawn = values.clone()
        drawn[has_target] = flat[torch.from_numpy(rng.integers(len(flat), size=len(flat)))].flatten()
        return drawn

    inputs = draw(batch.inputs)
    return replace(batch, inputs=inputs, targets=inputs if batch.targets is batch.inputs else draw(batch.targets))
