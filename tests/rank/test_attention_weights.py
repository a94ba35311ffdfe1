"""Numbers of attention weights: rows whose numbers are known, networks by hand, in a stack and alone."""

import math

import numpy as np
import pytest
import torch
from helpers import by_member
from one_stack import chosen, stack

from rankfall.rank.attention_weights.measure import FIRST_LEFT_OUT, attention_weights, concentrations

DOUBLE = {"dtype": torch.float64}


def test_known_rows() -> None:
    rows = torch.tensor([[0.25] * 4, [0, 1, 0, 0], [0.5, 0.5, 0, 0], [-3, 1, 0, 0], [0] * 4], **DOUBLE)
    found = concentrations(rows)
    uneven = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found["entropy"].tolist()[:4] == pytest.approx([math.log(4), 0, math.log(2), uneven])
    assert found["inverse_participation"].tolist()[:4] == pytest.approx([0.25, 1, 0.5, 0.625])
    assert found["largest_share"].tolist()[:4] == pytest.approx([0.25, 1, 0.5, 0.75])
    assert found["first_share"].tolist()[:4] == pytest.approx([0.25, 0, 0.5, 0.75])
    assert all(values[4].isnan() for values in found.values())
    for name, values in concentrations(rows * 1e-310).items():  # subnormal numbers have few digits
        assert torch.allclose(values[:4], found[name][:4], rtol=1e-10)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_values_by_hand(placement: str) -> None:
    context = stack(norm_placement=placement, mask="causal")
    rows = by_member(attention_weights, context, samples=3)
    made = context.network.double()
    x = made.states(context.data.test.inputs[:, :3])[1]
    block = made.blocks[1]
    weights = block.attention.weights(x if placement == "post" else block.norm1(x))[1].numpy()  # (B, H, T, T)
    for left_out, part in (("nothing", weights), ("first token", weights[..., 1:, 1:])):
        p = part / part.sum(-1, keepdims=True)
        wanted = {
            "entropy": -np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0).sum(-1).mean(-1),
            "inverse_participation": (p**2).sum(-1).mean(-1),
            "largest_share": p.max(-1).mean(-1),
        }
        if left_out == "nothing":
            wanted["first_share"] = p[..., 0].mean(-1)
        for quantity, values in wanted.items():  # (B, H)
            for head, each in ((None, values.mean(1)), (0, values[:, 0]), (1, values[:, 1])):
                label = {"member": 1, "layer": 2, "left_out": left_out, "quantity": quantity}
                (row,) = chosen(rows, attention_head=head, **label)
                assert row["value"] == pytest.approx(each.mean()), (left_out, quantity, head)
                assert row["tokens"] == 5
                assert row["deviation"] == pytest.approx(each.std(ddof=1))
    for row in rows:
        without = row["quantity"] == "first_share" and row["left_out"] == "first token"
        assert row["value_reason"] == (FIRST_LEFT_OUT if without else "")
        assert (row["value"] is None) is without


def test_rows_of_zeros_are_left_out_and_counted() -> None:
    """`softpick` gives a row whose scores are all below zero no weight at all; so many rows as there are."""
    context = stack(members=1, normaliser="softpick")
    block = context.network.blocks[0]
    block.attention.query.weight.data *= 30
    rows = by_member(attention_weights, context, heads=False)
    made = context.network.double()
    weights = block.attention.weights(made.lift(context.data.test.inputs))[0]
    (row,) = chosen(rows, layer=1, left_out="nothing", quantity="largest_share")
    empty = (weights == 0).all(-1)
    assert 0 < row["rows_without"] == pytest.approx(float(empty.double().mean()))
    assert row["value"] is not None and row["value"] <= 1
