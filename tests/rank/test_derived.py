"""Check derived centred forms of normalisers: as exact as those worked out on paper, and refused where they cannot be."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import component_pages
import foreign
import numpy as np
import pytest
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, Component
from rankfall.rank.centred.assumptions import Unknown
from rankfall.rank.centred.attention import step
from rankfall.rank.centred.derived import Traits, derive_weights, find_written_rule, traits
from rankfall.rank.centred.scaled import Scaled, State, normal
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.weights import rule_of
from rankfall.rank.orders import measure as orders
from rankfall.rank.orders import slopes as order_draws

NAMES = ("softmax", "l2", "swish_l2", "exp", "sigmoid", "relu2", "softmax_off_by_one")
SCALES = np.array([-0.5, -1.0, -2.0, -4.0, -8.0, -16.0, -40.0, -150.0, -1000.0])  # log10


def alone(**parts: str) -> Architecture:
    return replace(orders.ALONE, **{name: Component(part) for name, part in parts.items()})


def stepped(design: Architecture, change: Callable[[Any], Any] | None = None) -> State:
    """What a layer makes of rows at all scales, with its normaliser exchanged."""
    made = order_draws.networks(design, 6, 3, True)
    state = order_draws.start(made, 3, 6)
    order_draws.wake(made, state)
    if change is not None:
        attention = made.blocks[0].attention
        attention._modules.pop("normaliser", None)
        attention.normaliser = change(attention.normaliser)
    return step(made.blocks[0], order_draws.at_scales(state, SCALES))


@pytest.mark.parametrize("sentinels", ["none", "bos"])
@pytest.mark.parametrize("name", NAMES)
def test_derived_is_what_was_worked_out_on_paper(name: str, sentinels: str) -> None:
    """The forms on paper are held against 400 digits elsewhere (test_centred.py)."""
    design = alone(normaliser=name, sentinels=sentinels)
    function = components.load("normaliser", name)
    paper, found = stepped(design).rest, stepped(design, lambda _: lambda logits: function(logits)).rest
    torch.testing.assert_close(found.log, paper.log, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found.unit, paper.unit, rtol=1e-10, atol=1e-10)


def scores(log10: float, heads: int = 2, level: bool = True) -> Scores:
    """Scores of five rows and keys, apart, like those of a layer whose R has this size."""
    generator = torch.Generator().manual_seed(3)

    def part(*shape: int, scale: float) -> Scaled:
        unit = torch.randn(1, 1, heads, *shape, generator=generator, dtype=torch.float64)
        return normal(unit, torch.full((1, 1), scale * float(np.log(10.0)), dtype=torch.float64))

    base = torch.randn(1, 1, heads, 1, 1 if level else 5, generator=generator, dtype=torch.float64)
    query = part(5, 1, scale=log10)
    query = query.map(query.unit.expand(-1, -1, -1, -1, 5))
    return Scores(
        base.expand(-1, -1, -1, 1, 5), part(1, 5, scale=log10), query, part(5, 5, scale=2 * log10), True, level
    )


@pytest.mark.parametrize("name", ["softmax", "l2"])
def test_a_score_common_to_a_row_is_forgotten_whatever_keys_are_worth(name: str) -> None:
    """Where a position's share differs by key alone: what rows share is not level, and E is far below what it is added to."""
    s = scores(-30.0, level=False)
    rule = rule_of(components.load("normaliser", name))
    assert rule is not None
    louder = rule(replace(s, query=Scaled(s.query.unit, s.query.log + 20.0)))
    torch.testing.assert_close(rule(s).rows.value(), louder.rows.value(), rtol=1e-12, atol=0)


def test_what_is_added_to_a_denominator_is_seen() -> None:
    """A millionth of a millionth of a millionth of a millionth: rows do not sum to one, and a common score is felt."""
    base = torch.zeros((1, 2, 1, 5, 5), dtype=torch.float64)
    found = traits(lambda x: x.exp() / (x.exp().sum(-1, keepdim=True) + 1e-24), base, True)
    assert found.shift != "forgotten"
    assert found.sums != "constant"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (foreign.single, "computes in single precision"),
        (foreign.largest, "jumps at the scores that all rows share"),
        (lambda x: (x - x.detach() / 2).softmax(-1), "slope of the normaliser is not its derivative"),
    ],
)
def test_what_cannot_be_derived_is_refused(function: Callable[[Tensor], Tensor], reason: str) -> None:
    with pytest.raises(Unknown, match=reason):
        stepped(orders.ALONE, lambda _: function)


@pytest.mark.parametrize(("log10", "holds"), [(-3.0, False), (-12.0, True)])
def test_a_kink_on_the_way_is_left_to_the_plain_pass(log10: float, holds: bool) -> None:
    """Where rows that are visibly apart lie on both sides of it; far from it the form holds."""
    s = scores(log10)
    edge = s.base + 2e-4
    weights = derive_weights(lambda x: (x + (x - edge).relu()).softmax(-1), Traits("felt", "constant"), s)
    assert weights.holds is not None and bool(weights.holds.all()) is holds


def test_a_centred_form_beside_a_normaliser_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that the documentation shows. Gradients are cut, so that what is computed can only be its own rule's."""
    component_pages.write(tmp_path, component_pages.files("theory"))
    monkeypatch.syspath_prepend(tmp_path)
    shown, design = import_module("lab.soft").soft, alone(normaliser="softmax")
    assert find_written_rule(shown) is not None

    def rest(function: Any, temperature: float) -> Scaled:
        return stepped(design, lambda _: partial(function, temperature=temperature)).rest

    paper, known = stepped(design).rest, rest(foreign.known, 1.0)
    torch.testing.assert_close(known.log, paper.log, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(known.unit, paper.unit, rtol=1e-12, atol=1e-12)
    warm, derived, documented = (rest(function, 2.0) for function in (foreign.known, foreign.soft, shown))
    torch.testing.assert_close(warm.unit, derived.unit, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(warm.unit, documented.unit, rtol=1e-12, atol=1e-12)


def test_a_wrong_one_is_not() -> None:
    with pytest.raises(Unknown, match=re.escape("the centred form beside foreign:mistaken does not agree")):
        stepped(orders.ALONE, lambda _: foreign.mistaken)
