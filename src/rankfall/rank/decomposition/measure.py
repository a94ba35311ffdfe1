"""Exact path decomposition: the contribution of paths of each length (Dong et al. 2021, theorem 2.1), for networks without MLP and norm.

With every P_h frozen at its value in the full forward pass, a layer is linear, X -> a X + c (sum_h P_h X W_h + bias terms), where a and
c are the two factors of its residual connection. The output is then the sum over all (1 + H)^L paths, and the sum over the paths of one
length follows layer by layer,

    S_k <- a S_k + c sum_h P_h S_{k-1} W_h,

without listing them. Biases are added in every layer; their total contribution is one more term, without a length. Each term has its
size; its signed share of the output, <S_k, X> / <X, X>, which adds up to one; its relative residual; and loss and accuracy with this
term (and the bias term) alone, and without it.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.measure.shared import in_float64
from rankfall.nets.network import Network
from rankfall.rank.powers import exponent_of, measurable, reason_of, shift
from rankfall.rank.residual import matrix_norm, relative_residual
from rankfall.train.objectives import classes, values

TARGETS = ["classes", "values"]
USES = ("weights", "heads", "values", "blocks")
REQUIRES = [
    ({"mlp": "none"}, "a network with an MLP is not a sum over paths"),
    ({"norm": "none"}, "a network with norms is not a sum over paths"),
]
BIAS = "bias"
OF_OUTPUT = ("size", "norm_share", "output_share", "relative_residual", "error")
EXACT = 1e-8  # relative to the largest entry; larger errors are not rounding


@torch.no_grad()
def decomposition(context: Context, *, samples: int = 256) -> list[dict[str, Any]]:
    """Return a row for each path length and for the bias term, over the first test samples."""
    network, inputs = in_float64(context, samples)
    targets = context.data.test.targets[:, :samples]
    terms, bias = path_terms(network, inputs)
    whole = network.states(inputs)[-1]
    total = torch.stack(terms).sum(0) + bias
    known = measurable(whole.flatten(1, 2))  # (K,)
    error = torch.where(known, (total - whole).abs().amax((1, 2, 3)) / whole.abs().amax((1, 2, 3)), torch.nan)
    if bool((error > EXACT).any()):  # an MLP, a norm, or a user's residual connection that is not a X + c F(X)
        raise RankfallError(
            f"decomposition: paths miss the output by {float(error.max()):.1g} of it: a component of this network is not linear "
            "where the theorem assumes it; leave these cells out"
        )
    objective = values if targets.is_floating_point() else classes

    def score(states: Tensor) -> tuple[Tensor, Tensor]:
        graded = objective.grade(network.readout(states), targets)
        correct = graded.sums.get("accuracy", torch.nan * graded.loss)
        return graded.loss, correct / graded.asked

    loss, accuracy = score(whole)
    sizes = torch.stack([matrix_norm(term.flatten(1, 2), "frobenius") for term in [*terms, bias]])  # (L + 2, K)
    size = -exponent_of(whole, (1, 2, 3))[:, None, None, None]
    output = shift(whole, size)  # a product of two numbers of 1e-200 would be zero
    rows = []
    for index, term in enumerate([*terms, bias]):  # (K, B, T, D)
        is_bias = index == len(terms)
        columns = {
            "size": sizes[index],
            "norm_share": sizes[index] / sizes.sum(0),
            "output_share": (shift(term, size) * output).sum((1, 2, 3)) / output.square().sum((1, 2, 3)),
            "relative_residual": relative_residual(term).mean(1),
        }
        columns |= dict(zip(("loss_without", "accuracy_without"), score(whole - term)))
        columns |= dict(zip(("loss_alone", "accuracy_alone"), score(term if is_bias else term + bias)))
        columns |= {"loss": loss, "accuracy": accuracy, "error": error}
        row: dict[str, Any] = {"term": BIAS, "length": None} if is_bias else {"term": "paths", "length": index}
        for name, value in columns.items():
            exists = bool(value[0].isfinite()) and (bool(known[0]) or name not in OF_OUTPUT)
            row[name] = value[0].item() if exists else None
        rows.append(row | {"value_reason": "" if known[0] else reason_of(whole.flatten(1, 2))})
    return rows


def path_terms(network: Network, inputs: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return the contributions of paths of each length 0 .. L and of the biases to the last state: (K, B, T, D) each."""
    states = network.states(inputs)
    terms, bias = [states[0]], torch.zeros_like(states[0])
    unit, zero = torch.ones((), dtype=bias.dtype), torch.zeros((), dtype=bias.dtype)
    for block, x in zip(network.blocks, states):
        attention = block.attention
        weights = attention.weights(x)  # (K, B, H, T, T), frozen
        keep, take = block.residual(unit, zero), block.residual(zero, unit)
        mixed = [take * linear_mix(attention, weights, term) for term in terms]
        none = torch.zeros_like(bias)
        terms = [keep * a + b for a, b in zip([*terms, none], [none, *mixed])]
        # The attention of a zero state gives the contribution of its biases.
        source = attention.mix(weights, none)
        bias = keep * bias + take * (linear_mix(attention, weights, bias) + source)
    return terms, bias


def linear_mix(attention: Any, weights: Tensor, x: Tensor) -> Tensor:
    """Return sum_h P_h X W_h, without biases."""
    values = attention.split(x @ attention.value.weight.unsqueeze(1))  # (K, B, H, T, d)
    return (weights @ values).transpose(2, 3).flatten(-2) @ attention.output.weight.unsqueeze(1)
