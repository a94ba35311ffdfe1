"""Any map of states by its own derivatives: as exact as what was worked out on paper, and as 400 digits; refused where it cannot be."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rankfall.design import Architecture, Component
from rankfall.rank.centred.assumptions import Unknown, draw_like
from rankfall.rank.centred.attention import attend, mix, step
from rankfall.rank.centred.expanded import center_rows, expand_map, first_order
from rankfall.rank.centred.scaled import spread
from rankfall.rank.orders import measure as orders
from rankfall.rank.orders import slopes as order_draws

SCALES = np.array([-0.5, -1.0, -2.0, -4.0, -8.0, -16.0, -40.0, -150.0, -1000.0])  # log10


def alone(**parts: Any) -> Architecture:
    named = {name: part if isinstance(part, Component) else Component(part) for name, part in parts.items()}
    return replace(orders.ALONE, **named)  # type: ignore[arg-type]


def prepared(design: Architecture, draws: int = 2, tokens: int = 5) -> tuple[Any, Any]:
    """A network of one layer, and a state of it."""
    made = order_draws.networks(design, tokens, draws, True)
    state = order_draws.start(made, draws, tokens)
    order_draws.wake(made, state)
    return made, state


@pytest.mark.parametrize(
    "parts",
    [
        *({"normaliser": name} for name in ("softmax", "l2", "exp", "sigmoid", "zero_sum", "cosine", "log_n")),
        *({"normaliser": name, "sentinels": "bos"} for name in ("softmax", "softmax_off_by_one")),
        {"mask": "causal"},
        {"position": "toeplitz"},
        {"position": "rope"},
    ],
    ids=lambda parts: "-".join(parts.values()),
)
def test_derivatives_give_what_was_worked_out_on_paper(parts: dict[str, str]) -> None:
    made, state = prepared(alone(**parts))
    wide, attention = order_draws.at_scales(state, SCALES), made.blocks[0].attention
    paper, found = attend(attention, wide).rest, expand_map(attention, wide, "it").rest
    torch.testing.assert_close(found.log, paper.log, rtol=1e-11, atol=1e-11)
    again = found.unit * spread((found.log - paper.log).exp(), found.unit)
    torch.testing.assert_close(again, paper.unit, rtol=1e-9, atol=1e-9)


def test_a_whole_block_too() -> None:
    """With a norm, an MLP and skip connections: rows keep their size, and all digits."""
    transformer = replace(alone(mlp="gelu", norm="layer", residual="add"), norm_placement="pre")
    made, state = prepared(transformer)
    wide, block = order_draws.at_scales(state, SCALES), made.blocks[0]
    paper, found = step(block, wide).rest, expand_map(block, wide, "it").rest
    torch.testing.assert_close(found.log, paper.log, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found.unit, paper.unit, rtol=1e-9, atol=1e-9)


def test_what_cannot_be_derived_says_what_is_missing() -> None:
    made, state = prepared(alone(attention="foreign:Rounded"))
    with pytest.raises(Unknown, match=r"^the attention foreign:Rounded: its slope is not its derivative"):
        mix(made.blocks[0].attention, order_draws.at_scales(state, SCALES))


def test_four_derivatives_are_looked_at_and_no_more() -> None:
    """Of rows whose differences are raised to a power, the derivative of that number is the first to differ."""
    base = draw_like(torch.zeros(1, 2, 1, 3, dtype=torch.float64)).expand(1, 2, 4, 3)
    away, along = base + draw_like(base, 1), draw_like(base, 2)
    there = torch.ones(1, 2, dtype=torch.bool)
    for power in range(1, 6):

        def f(x: torch.Tensor, power: int = power) -> torch.Tensor:
            return x.mean(-2, keepdim=True) + center_rows(x) ** power

        if power < 5:
            assert first_order(f, base, away, along, there) == power
        else:
            with pytest.raises(Unknown, match="rows do not differ in its first 4 derivatives"):
                first_order(f, base, away, along, there)
