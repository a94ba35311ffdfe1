"""Gradients that cancel exactly: 0 by autograd, and what rounding leaves of them by the machine, which Adam makes whole steps of.

Where the tokens of a sample are each other's negatives, terms of a bias's gradient are so too, and added up as autograd adds them they
leave 0. The machine merges additions with multiplications and leaves 1e-8 of them, and Adam divides a gradient by its own size. A task says
by SYMMETRIC that its data are like that; `find_remainder` finds a task that does not say so, on the first batch of one member.

It looks at whole parameters, since a single number may be 0 by chance or be used by no sample. A parameter is found if its gradient

- is 0 by autograd, and not 0 by the machine, but large enough for Adam's eps to make a step of it;
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

from rankfall.design import Training
from rankfall.streams import stream
from rankfall.train.machine.autograd import Result, by_autograd, to_double
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

WITHOUT_EFFECT = "attention.key.bias"
STEP = 1e-4  # share of a whole step that Adam must make of a remainder, g / (g + eps)
# Of a remainder in float32: float64 leaves 2e-9 of it, and data that are symmetric but for rounding 1e-8.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Remainder:
    """The largest number of the machine's gradient of a parameter whose gradient is 0."""

    parameter: str
    value: float


def find_remainder(
    members: Members, double: Members, training: Training, batch: Samples, machine: Result, plain: Result, exact: Result
) -> Remainder | None:
    """The first parameter of which the machine leaves such a remainder. Of the same step: `machine`, `plain` by autograd in float32, and
    `exact` in float64, by the networks `double`."""
    eps = getattr(members.optimizer, "eps", None)
    if eps is None:  # a step as small as its gradient
        return None
    left, wanted = sizes(members, machine), sizes(members, plain)
    names = [name for name, size in wanted.items() if size == 0 and left[name] > STEP * eps]
    if not names:
        return None
    zero, other = sizes(double, exact), sizes(double, by_autograd(double, training, to_double(mix_batch(batch)), 0))
    names = [name for name in names if zero[name] < ROUNDING * left[name] < other[name]]
    return Remainder(names[0], left[names[0]]) if names else None


def sizes(members: Members, of: Result) -> dict[str, float]:
    """The size of the largest number of each parameter's gradient, of the first member."""
    each = zip(members.layout, of[1][0].split([value[0].numel() for value in members.parameters]))
    return {name: float(part.abs().max()) for name, part in each if not name.endswith(WITHOUT_EFFECT)}


def mix_batch(batch: Samples) -> Samples:
    """Every token and every target drawn from all of the batch: of the same sizes, but no longer each other's negatives or alike."""
    rng = stream(batch.seeds[0], "exact zeros")

    def draw(values: Tensor) -> Tensor:
        """(K, B, T) or (K, B, T, C); places where nothing is asked stay."""
        asked = torch.ones_like(values, dtype=torch.bool) if values.dim() > 3 else values != -1
        flat = values[asked].view(-1, *values.shape[3:])
        made = values.clone()
        made[asked] = flat[torch.from_numpy(rng.integers(len(flat), size=len(flat)))].flatten()
        return made

    inputs = draw(batch.inputs)
    return replace(batch, inputs=inputs, targets=inputs if batch.targets is batch.inputs else draw(batch.targets))
