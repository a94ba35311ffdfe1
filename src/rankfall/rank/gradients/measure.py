"""Norms of the loss's gradient by layer: for the weights of queries, keys and values, and for the state that enters the layer.

The loss is that of the cell's own objective, as training evaluates it: on the first test samples, without dropout, with the places that
masked language modelling hides drawn from the cell's seed. Gradients are computed in float64 by autograd, at the cell's current weights,
so that at initialisation they are the gradients at the start of training. A mixer without such weights has a reason in place of a norm.

Where tokens have collapsed, gradients of queries and keys vanish and the computed values are rounding. `floor` marks them by means of a
second pass.
"""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context, Rows
from rankfall.measure.shared import double_values, in_float64
from rankfall.nets.network import Network
from rankfall.rank.powers import length, measurable, outside
from rankfall.rank.rounding import NOISE, called_first, shaken
from rankfall.tasks._dataset import TEST, Split
from rankfall.train.objectives._base import Samples
from rankfall.train.recipe import objective

COST = {"seconds": 0.2, "megabytes": 100.0}
ROLES = {"queries": "query", "keys": "key", "values": "value"}
INPUT = "input"
NOT_FINITE = "the loss is not finite"
NO_WAY = "the loss does not depend on them"


@dataclass(frozen=True)
class Backward:
    """Loss and gradients of one network, by layer and variable.

    `lost`: for each layer, whether a state up to its input has no size.
    """

    loss: float
    gradients: list[dict[str, list[Tensor]]]
    lost: list[bool]


def gradients(context: Context, *, samples: int = 32) -> Rows:
    """Measure the first test samples."""
    names = weights_by_role(context.network)
    network, inputs = in_float64(context, samples)
    (cell,), test = context.cells, context.data.test
    targets = inputs if test.targets is test.inputs else double_values(test.targets[:, :samples])
    batch = context.data.batch(Split(inputs, targets), [cell.seed], (TEST, 0))
    loss = objective(cell.training)
    plain, moved = (gradients_of(network, loss, batch, names, shake) for shake in (False, True))
    about = {"samples": inputs.shape[1], "loss": plain.loss if math.isfinite(plain.loss) else None}
    return [
        about | {"layer": layer + 1, "of": role} | gradient_row(plain, moved, layer, role)
        for layer in range(len(names))
        for role in (*ROLES, INPUT)
    ]


def weights_by_role(network: Network) -> list[dict[str, list[str]]]:
    """Return, for each layer, the names of its attention's weights for queries, keys and values, without biases."""
    by_layer = []
    for number, block in enumerate(network.blocks):
        parameters = block.attention.named_parameters()
        named = [(f"blocks.{number}.attention.{name}", parameter.initial) for name, parameter in parameters]
        weights = [(name, initial.role) for name, initial in named if initial.kind == "weight"]
        by_layer.append(
            {role: [name for name, kind in weights if kind == singular] for role, singular in ROLES.items()}
        )
    return by_layer


def gradients_of(
    network: Network, loss: Any, batch: Samples, names: list[dict[str, list[str]]], shake: bool
) -> Backward:
    """Return loss and gradients. `shake`: of a pass whose rounding differs."""
    entered: list[Tensor] = []
    network.requires_grad_(True)
    with torch.enable_grad(), shaken(network) if shake else nullcontext():
        with called_first(lambda _, arguments: entered.append(arguments[0]), network.blocks):
            mean = loss(network, batch).loss.sum()
        parameters = dict(network.named_parameters())
        variables_of_layers = [
            {role: [parameters[name] for name in listed] for role, listed in layer.items()} | {INPUT: [x]}
            for layer, x in zip(names, entered, strict=True)
        ]
        flat = [x for layer in variables_of_layers for variables in layer.values() for x in variables]
        computed = iter(torch.autograd.grad(mean, flat, allow_unused=True))
    gradients = [
        {role: [x for x in (next(computed) for _ in variables) if x is not None] for role, variables in layer.items()}
        for layer in variables_of_layers
    ]
    states = [bool((~measurable(x)).any()) for x in entered]
    return Backward(float(mean.detach()), gradients, [any(states[: n + 1]) for n in range(len(states))])


def gradient_row(plain: Backward, moved: Backward, layer: int, role: str) -> dict[str, Any]:
    """Return the norm of one variable's gradient in a layer, from two passes that round differently."""
    gradient, other = ([x.flatten() for x in result.gradients[layer][role]] for result in (plain, moved))
    empty: dict[str, Any] = {"value": None, "entries": None, "floor": None}
    if not gradient:
        none = f"the attention of this layer has no weights of {role}, or the loss does not depend on them"
        return empty | {"value_reason": NO_WAY if role == INPUT else none}
    if not math.isfinite(plain.loss):
        return empty | {"value_reason": NOT_FINITE}
    if any(plain.lost):  # a gradient passes through all layers
        return empty | {"value_reason": outside(torch.float64)}
    whole, gap = torch.cat(gradient), torch.cat(gradient) - torch.cat(other)
    size = float(length(whole))
    if not math.isfinite(size) or 0 < size < torch.finfo(torch.float64).tiny:
        return empty | {"value_reason": "the gradient is beyond what float64 can hold"}
    samples = plain.gradients[layer][role][0].shape[1] if role == INPUT else 1
    norm = {"value": size * math.sqrt(samples), "entries": whole.numel() // samples}
    return norm | {"floor": bool(length(gap) > NOISE * size), "value_reason": ""}
