"""Centred forms of normalisers that nobody has worked out: as exact as those that somebody has, and refused where they cannot be."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import component_pages
import foreign
import mpmath as mp
import numpy as np
import pytest
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, Component
from rankfall.nets.primitives import Sizes
from rankfall.rank.centred.assumptions import Unknown
from rankfall.rank.centred.block import step
from rankfall.rank.centred.derived import Traits, derive_weights, find_written_rule, traits
from rankfall.rank.centred.scaled import Scaled, normal
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.state import State
from rankfall.rank.centred.weights import rule_of
from rankfall.rank.orders import draws as order_draws
from rankfall.rank.orders import measure as orders

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
    return step(made.blocks[0], order_draws.at(state, SCALES))


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


def exactly(x: Scaled, h: int, i: int, j: int) -> mp.mpf:
    return mp.mpf(float(x.unit[0, 0, h, min(i, x.unit.shape[3] - 1), j])) * mp.exp(mp.mpf(float(x.log[0, 0])))


def score(s: Scores, h: int, i: int, j: int) -> mp.mpf:
    return mp.mpf(float(s.base[0, 0, h, 0, j])) + sum(exactly(x, h, i, j) for x in (s.key, s.query, s.both))


def soft(row: list[Any], temperature: float) -> list[Any]:
    e = [mp.exp(b / mp.mpf(temperature)) for b in row]
    return [v / mp.fsum(e) for v in e]


def sparse(row: list[Any]) -> list[Any]:
    ordered = sorted(row, reverse=True)
    held = max(k for k in range(1, len(row) + 1) if 1 + k * ordered[k - 1] > mp.fsum(ordered[:k]))
    threshold = (mp.fsum(ordered[:held]) - 1) / held
    return [max(b - threshold, mp.mpf(0)) for b in row]


def differential(rows: list[list[Any]], head: int) -> list[Any]:
    return [a - mp.mpf(0.5) * b for a, b in zip(soft(rows[head], 1), soft(rows[1 - head], 1))]


SIZES = Sizes(1, 5, 1, 8, 2, 4, 8, 1, 1)
EXACT: dict[str, tuple[Callable[..., Any], Callable[[list[list[Any]], int], list[Any]]]] = {
    "sparsemax": (foreign.sparsemax, lambda rows, h: sparse(rows[h])),
    "temperature": (partial(foreign.soft, temperature=0.3), lambda rows, h: soft(rows[h], 0.3)),
    "differential": (None, differential),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("level", [True, False])
@pytest.mark.parametrize("log10", [-2.0, -100.0])
@pytest.mark.parametrize("name", EXACT)
def test_derived_in_400_digits(name: str, log10: float, level: bool) -> None:
    function, exact = EXACT[name]
    if name == "differential":
        module = foreign.Differential(SIZES).double()
        module.share.data.fill_(0.5)
        function = module.requires_grad_(False)
    s = scores(log10, level=level)
    base = s.base.expand_as(s.both.unit).contiguous()
    found = derive_weights(function, traits(function, base, level), s)
    with mp.workdps(400):
        for h in range(2):
            p = [exact([[score(s, g, i, j) for j in range(5)] for g in range(2)], h) for i in range(5)]
            for name_of, wanted, got, columns in (
                ("rows", p, found.rows, 5),
                ("sums", [[mp.fsum(row)] for row in p], found.sums, 1),
            ):
                if got is None:  # said to be constant
                    assert max(abs(row[0] - wanted[0][0]) for row in wanted) < mp.mpf(10) ** -390
                    continue
                means = [mp.fsum(row[j] for row in wanted) / 5 for j in range(columns)]
                apart = [[row[j] - means[j] for j in range(columns)] for row in wanted]
                unit = got.unit - got.unit.mean(-2, keepdim=True)
                mine = [[exactly(Scaled(unit, got.log), h, i, j) for j in range(columns)] for i in range(5)]
                size = max(abs(v) for row in apart for v in row)
                error = max(abs(a - b) for one, two in zip(mine, apart) for a, b in zip(one, two))
                assert error < 1e-10 * size, name_of


@pytest.mark.parametrize("name", ["softmax", "l2"])
def test_a_score_common_to_a_row_is_forgotten_whatever_keys_are_worth(name: str) -> None:
    """Where a position's share differs by key alone: what rows share is not level, and E is far below what it is added to."""
    s = scores(-30.0, level=False)
    rule = rule_of(components.load("normaliser", name))
    assert rule is not None
    found = rule(s)
    louder = rule(replace(s, query=Scaled(s.query.unit, s.query.log + 20.0)))
    torch.testing.assert_close(found.rows.value(), louder.rows.value(), rtol=1e-12, atol=0)


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

    def kinked(x: Tensor) -> Tensor:
        return (x + (x - edge).relu()).softmax(-1)

    found = derive_weights(kinked, Traits("felt", "constant"), s)
    assert found.holds is not None
    assert bool(found.holds.all()) is holds


def test_a_centred_form_beside_a_normaliser_is_used() -> None:
    """Its gradients are cut, so that what is found can only be its own rule's."""
    design = alone(normaliser="softmax")
    paper = stepped(design).rest
    found = stepped(design, lambda _: partial(foreign.known, temperature=1.0)).rest
    torch.testing.assert_close(found.log, paper.log, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(found.unit, paper.unit, rtol=1e-12, atol=1e-12)
    warmer = stepped(design, lambda _: partial(foreign.known, temperature=2.0)).rest
    derived_form = stepped(design, lambda _: partial(foreign.soft, temperature=2.0)).rest
    torch.testing.assert_close(warmer.unit, derived_form.unit, rtol=1e-9, atol=1e-9)


def test_the_centred_form_that_the_documentation_shows_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component_pages.write(tmp_path, component_pages.files("theory"))
    monkeypatch.syspath_prepend(tmp_path)
    shown = import_module("lab.soft").soft
    assert find_written_rule(shown) is not None
    design = alone(normaliser="softmax")
    found, known = (stepped(design, lambda _, f=f: partial(f, temperature=2.0)).rest for f in (shown, foreign.known))  # type: ignore[misc]
    torch.testing.assert_close(found.unit, known.unit, rtol=1e-12, atol=1e-12)


def test_a_wrong_one_is_not() -> None:
    with pytest.raises(Unknown, match=re.escape("the centred form beside foreign:mistaken does not agree")):
        stepped(orders.ALONE, lambda _: foreign.mistaken)
