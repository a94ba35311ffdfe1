"""The order table: complete, sharp, in agreement with theory, and right on cases that can be worked out by hand."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rankfall.design import Component
from rankfall.measure.context import Context
from rankfall.rank.orders import measure as module
from rankfall.rank.orders import slopes as order_draws
from rankfall.rank.orders import slopes as order_slopes
from rankfall.rank.orders.theory import expect_order
from rankfall.report.conform import conform

ONE: dict[str, Any] = {"positions": ["none"], "masks": ["none"], "sentinels": ["none"]}


@pytest.mark.long
def test_every_entry_is_sharp_and_agrees_with_theory() -> None:
    rows = module.orders(Context(), heads=[2], draws=4)
    assert len(conform("orders", rows)) == len(rows)
    assert sum(row["order"] is None for row in rows) < 0.02 * len(rows)
    for row in rows:
        if row["order"] is None:
            # With relu^2, say, whether a head sees the sentinel at all is the luck of the draw.
            assert row["quantity"] == "sigma_ratio", row
            assert "depends on the draw" in row["reason"]
            continue
        assert row["uncertainty"] < 0.05, row
        if row["quantity"] == "res":
            assert abs(row["order"] - row["theory"]) < 0.02, row


def test_the_published_case_is_cubic() -> None:
    """Softmax attention, bidirectional, without position (Dong et al. 2021): 3, and alone with its like in that."""
    rows = module.orders(Context(), blocks=["attention alone"], heads=[2], draws=4, **ONE)
    alone = [row for row in rows if row["quantity"] == "res" and row["block"] == "attention alone"]
    assert {row["normaliser"] for row in alone if round(row["order"]) == 3} == {"softmax", "l2", "swish_l2"}


def test_one_head_without_biases_keeps_direction() -> None:
    """Without denominator all rows become multiples of one vector: res falls in first order, sigma_2 / sigma_1 in third."""
    rows = module.orders(Context(), normalisers=["exp", "urpe"], blocks=["attention alone"], heads=[1], **ONE)
    order = {(row["normaliser"], row["quantity"]): row["order"] for row in rows if not row["biases"]}
    assert order["exp", "res"] == pytest.approx(1, abs=0.01)
    assert order["exp", "sigma_ratio"] == pytest.approx(3, abs=0.05)
    assert order["urpe", "res"] == pytest.approx(0, abs=0.01)
    assert order["urpe", "sigma_ratio"] == pytest.approx(1, abs=0.05)


def test_fit_finds_slope_constant_and_spread() -> None:
    x = np.linspace(-8, -40, 9)
    lines = torch.from_numpy(np.stack([2.0 * x - 1, 2.02 * x - 1, np.full(9, -np.inf)]))
    found = order_slopes.fit(x, lines, "centred")
    assert found["order"] == pytest.approx(2.01)
    assert found["uncertainty"] == pytest.approx(math.sqrt(0.0002))
    assert found["log10_constant"] == pytest.approx(-1)
    assert found["identical_draws"] == 1
    nothing = order_slopes.fit(x, lines[2:], "centred")
    assert nothing["order"] is None
    assert nothing["reason"]
    split = order_slopes.fit(x, torch.from_numpy(np.stack([x, 3 * x])), "centred")
    assert split["order"] is None
    assert split["reason"] == "depends on the draw: 1 in 1, 3 in 1"
    for uncertainty, sharp in ((0.048, True), (0.052, False)):
        found = order_slopes.fit(x, torch.from_numpy(np.stack([x, (1 + uncertainty * 2**0.5) * x])), "centred")
        assert (found["order"] is not None) == sharp and found["uncertainty"] == pytest.approx(uncertainty)


def test_direct_float64_agrees() -> None:
    """The slopes of the plain forward pass, over the decades where it resolves them."""
    for name, p in (("softmax", 3), ("l2", 3), ("exp", 1), ("sigmoid", 1)):
        design = replace(module.ALONE, normaliser=Component(name))
        network = order_draws.networks(design, 6, 4, True)
        state = order_draws.start(network, 4, 6)
        scales = np.linspace(-2.0, -3.5, 6)
        output = network.blocks[0](order_draws.at_scales(state, scales).full())
        found = order_slopes.fit(scales, order_slopes.relative(output).log10(), "float64")
        assert found["order"] == pytest.approx(p, abs=0.1)
        assert expect_order(design, biases=True)[0] == p


def test_theory_rests_on_what_components_declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it knows a user's normaliser that says what the formula needs, and no other."""
    monkeypatch.syspath_prepend(tmp_path)
    declared = {
        "says_one": 'ROWS = "one"\nSHIFT = "cancels"\n',
        "counts": 'ROWS = "free"\nSHIFT = "counts"\n',
        "silent": 'ROWS = "one"\n',
    }
    expected = {"says_one": (3, 1), "counts": (1, 0), "silent": (None, None)}
    for name, facts in declared.items():
        (tmp_path / f"{name}.py").write_text(facts + "def f(logits):\n    return logits.softmax(-1)\n")
        alone = replace(module.ALONE, normaliser=Component(f"{name}:f"))
        placed = replace(alone, position=Component("toeplitz"))
        assert tuple(expect_order(design, True)[0] for design in (alone, placed)) == expected[name]


def sharp(logits: torch.Tensor) -> torch.Tensor:
    """A normaliser that the package has never heard of."""
    return (2 * logits).softmax(-1)


def test_a_normaliser_from_outside_is_fitted_as_far_as_any() -> None:
    options = {"positions": ["none", "toeplitz"], "blocks": ["attention alone"], "heads": [2]}
    rows = module.orders(Context(), normalisers=["test_orders:sharp"], **ONE | options)
    res = {row["position"]: row for row in rows if row["quantity"] == "res" and row["biases"]}
    assert {row["method"] for row in rows} == {"centred"} and res["none"]["decades"] > 30
    assert [res[position]["order"] for position in ("none", "toeplitz")] == pytest.approx([3, 1], abs=1e-6)
    assert res["none"]["theory"] is None
    assert conform("orders", rows)


def pairs(logits: torch.Tensor) -> torch.Tensor:
    """Needs an even number of heads."""
    return logits.softmax(-1) - 0.5 * logits.unflatten(2, (-1, 2)).flip(3).flatten(2, 3).softmax(-1)


def test_one_that_fails_costs_its_own_rows_alone() -> None:
    normalisers = ["test_orders:pairs", "softmax"]
    rows = module.orders(Context(), normalisers=normalisers, blocks=["skip"], heads=[1, 2], draws=2, **ONE)
    failed = [row for row in rows if row["method"] == "none"]
    assert {(row["normaliser"], row["heads"]) for row in failed} == {("test_orders:pairs", 1)}
    assert (len(failed), len(rows)) == (6, 24)
    assert all(row["order"] is None and row["reason"].startswith("RuntimeError: ") for row in failed)
    assert conform("orders", rows)


def test_orders_of_blocks_with_masks_and_positions_are_those_of_theory() -> None:
    """A decoder shrinks differences by a factor, or not at all where row sums depend on the position. More heads alone are measured so."""
    options = {"positions": ["none", "rope"], "sentinels": ["none"], "blocks": ["decoder"], "heads": [1, 2], "draws": 2}
    orders = module.orders(Context(), normalisers=["softmax", "exp"], **options)  # type: ignore[arg-type]
    rows = [row for row in orders if row["quantity"] == "res" and row["block"] == "decoder"]
    placed = [row for row in rows if (row["position"], row["mask"]) != ("none", "none")]
    assert len(rows) == 2 * (1 + 4) and {row["heads"] for row in placed} == {2}
    assert all(row["order"] == pytest.approx(row["theory"], abs=1e-6) for row in rows)
    assert {(row["normaliser"], row["theory"]) for row in placed} == {("softmax", 1.0), ("exp", 0.0)}


def test_an_attention_has_the_masks_that_it_needs_and_no_rows_of_others() -> None:
    """Of 560 kinds of attention layer 146 had no order: those that cannot be built."""
    asked: dict[str, Any] = {"heads": [1], "draws": 2, "positions": ["none"], "sentinels": ["none"], "blocks": ["skip"]}
    rows = module.orders(Context(), attentions=["delta", "multihead"], normalisers=["softmax"], **asked)
    kinds = {(row["attention"], row["mask"], row["block"]) for row in rows}
    masks = (("multihead", "none"), ("multihead", "causal"), ("delta", "causal"))
    assert kinds == {(attention, mask, block) for attention, mask in masks for block in ("attention alone", "skip")}
    assert all(row["method"] != "none" for row in rows)
    (reason,) = {row["reason"] for row in module.orders(Context(), attentions=["delta"], masks=["none"], **asked)}
    assert reason == "a recurrence runs from the first token to the last: its mask is causal"


@pytest.mark.long
def test_the_gate_passes_the_residual_on_and_linear_attention_is_cubic() -> None:
    """Worked out in the docstrings of the two; found on plain float64, within what that resolves."""
    attentions: list[str | dict] = [
        {"name": "gau", "key_width": 8},
        "linear",
    ]  # scores of few dimensions stay of order one
    res = [
        row for row in module.orders(Context(), attentions=attentions, heads=[2], draws=4) if row["quantity"] == "res"
    ]
    undefined = [row for row in res if row["order"] is None]
    assert len(undefined) < 0.02 * len(res)
    assert all(row["attention"] != "linear" and "depends on the draw: " in row["reason"] for row in undefined)
    for row in res:
        if row["order"] is not None:
            assert abs(row["order"] - row["theory"]) < 0.05, row
    alone = {
        (row["attention"], row["normaliser"]): round(row["order"])
        for row in res
        if row["block"] == "attention alone"
        and (row["position"], row["mask"], row["sentinels"]) == ("none", "none", "none")
    }
    gated = {normaliser: order for (attention, normaliser), order in alone.items() if attention != "linear"}
    assert alone["linear", None] == 3
    assert gated == dict.fromkeys(gated, 1) | {"urpe": 0}
    assert {"softmax", "l2", "relu2"} <= gated.keys()


def test_queries_are_turned_and_lengthened_up_to_four_times() -> None:
    """Until the score of the common row with itself is 0.6, where four times are enough for that; longer ones keep their length."""
    design = replace(module.ALONE, normaliser=Component("relu2"), heads=2)
    network = order_draws.networks(design, 5, 24, True)
    state = order_draws.start(network, 24, 5)
    attention = network.blocks[0].attention

    def scores() -> torch.Tensor:
        q, k = attention.split(attention.query(state.common)), attention.split(attention.key(state.common))
        return (q * k).sum(-1).flatten() / attention.head_width**0.5

    before = scores().abs()
    order_draws.wake(network, state)
    expected = torch.where(before > 0.6, before, (4 * before).clamp(max=0.6))
    assert (before < 0.15).any() and ((before > 0.15) & (before < 0.6)).any() and (before > 0.6).any()
    torch.testing.assert_close(scores(), expected, rtol=1e-10, atol=0)
