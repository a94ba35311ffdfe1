"""Gradient norms against differences of the loss, and what has none."""

from typing import Any

import pytest
import torch
from helpers import by_member, each_network
from one_stack import chosen, stack
from torch import Tensor
from torch.nn.functional import cross_entropy

from rankfall.rank.gradients.measure import gradients

STEP = 1e-6


def differences(loss: Any, weight: Tensor) -> Tensor:
    """Return the gradient by central differences, entry by entry."""
    gradient, entries = torch.zeros_like(weight), weight.view(-1)
    for entry in range(weight.numel()):
        start, values = entries[entry].item(), []
        for step in (STEP, -STEP):
            entries[entry] = start + step
            values.append(float(loss()))
        entries[entry] = start
        gradient.view(-1)[entry] = (values[0] - values[1]) / (2 * STEP)
    return gradient


def test_norms_are_those_of_differences_of_the_loss() -> None:
    context = stack(members=2, mlp="gelu", norm_placement="pre", mask="causal")
    rows = by_member(gradients, context, samples=3)
    made = list(each_network(context.network))[1].double()
    inputs, targets = (one[1:2, :3] for one in (context.data.test.inputs, context.data.test.targets))

    def loss() -> Tensor:
        return cross_entropy(made(inputs).flatten(0, -2), targets.flatten())

    attention = made.blocks[1].attention
    for of, part in (("queries", attention.query), ("keys", attention.key), ("values", attention.value)):
        (row,) = chosen(rows, member=1, layer=2, of=of)
        assert row["value"] == pytest.approx(float(differences(loss, part.weight.data).norm()), rel=1e-5)
        assert (row["entries"], row["samples"], row["floor"], row["value_reason"]) == (64, 3, False, "")
        assert row["loss"] == pytest.approx(float(loss()))
    x = made.states(inputs)[1]  # what enters layer 2

    def rest() -> Tensor:
        return cross_entropy(made.readout(made.blocks[1](x)).flatten(0, -2), targets.flatten())

    (row,) = chosen(rows, member=1, layer=2, of="input")
    each = differences(rest, x).norm(dim=(-2, -1))[0] * 3  # of each sample's own loss
    assert row["value"] == pytest.approx(float(each.square().mean().sqrt()), rel=1e-5)
    assert row["entries"] == 5 * 8


def test_at_collapse_gradients_of_queries_are_rounding() -> None:
    """Attention alone cubes its residual: after four layers rows are equal, and scores cannot matter any more."""
    rows = by_member(gradients, stack(members=1, depth=6, residual="none", norm="none", position="none"))
    queries = {row["layer"]: row for row in chosen(rows, of="queries")}
    assert queries[6]["floor"] and not queries[1]["floor"]
    values = {row["layer"]: row for row in chosen(rows, of="values")}
    assert queries[6]["value"] < 1e-12 * values[6]["value"] and not values[6]["floor"]
