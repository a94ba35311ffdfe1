"""Check which components centred forms fit: those that a user writes and they do not fit are refused, the others are not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from helpers import by_member, data_of, network_of
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.network import Network
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes
from rankfall.rank.centred.attention import propagate, step
from rankfall.rank.centred.scaled import begin, rescale
from rankfall.rank.law.measure import law
from rankfall.rank.residual import relative_residual, residual

SIZES = Sizes(2, 6, 3, 8, 2, 4, 8, 1, 1)  # members, length, depth, width, heads, ...
INPUTS = torch.stack([torch.randperm(8, generator=torch.Generator().manual_seed(s))[:6] for s in range(3)]).expand(
    2, 3, 6
)
BAND = (torch.arange(6) - torch.arange(6).unsqueeze(1)) % 6 < 3


network = partial(network_of, 2, 6, 8, noise=0.3, seed=1, depth=4, norm="none", residual="none", position="none")


class Biased(Position):
    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.change = change

    def bias(self, logits: Tensor) -> Tensor:
        return self.change(logits)


def positioned(change: Callable[[Tensor], Tensor]) -> Callable[[Network], None]:
    def replace_positions(made: Network) -> None:
        for block in made.blocks:
            block.attention.position = Biased(change)

    return replace_positions


def blocks(**parts: Any) -> Callable[[Network], None]:
    def replace_parts(made: Network) -> None:
        for block in made.blocks:
            for name, part in parts.items():
                block._modules.pop(name, None)  # where a module was, only a module may follow
                setattr(block, name, part)

    return replace_parts


def gate(x: Tensor, branch: Tensor) -> Tensor:
    return x + branch.sigmoid() * branch


def mixing(x: Tensor) -> Tensor:
    return x - 0.9 * x.mean(-2, keepdim=True)


def rms(x: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-12).rsqrt()


MISFITS: dict[str, tuple[dict[str, Any], Callable[[Network], None], str]] = {
    "scores scaled": ({}, positioned(lambda scores: 5 * scores), "rows of attention weights"),
    "residual with a gate": ({}, blocks(residual=gate), "residual is not"),
    "residual over tokens": ({}, blocks(residual=lambda x, branch: mixing(x) + branch), "residual is not"),
    "norm over tokens": ({}, blocks(norm1=mixing), "norm does not act"),
    "MLP over tokens": ({"mlp": "gelu"}, blocks(mlp=lambda x: mixing(x).tanh()), "MLP does not act"),
}

FITTING: dict[str, tuple[dict[str, Any], Callable[[Network], None]]] = {
    "key bias": ({}, positioned(lambda scores: scores + torch.linspace(0, 1, 6, dtype=scores.dtype))),
    "scores scaled by distance": ({}, positioned(lambda scores: scores * BAND.double() + BAND)),
    "residual by feature": (
        {},
        blocks(residual=lambda x, branch: torch.linspace(0, 1, 8, dtype=x.dtype) * x + 0.5 * branch),
    ),
    "norm of each token": ({}, blocks(norm1=rms)),
    "MLP of each token": ({"mlp": "gelu"}, blocks(mlp=lambda x: x.tanh())),
    "smooth activation": ({"mlp": "gelu"}, lambda made: blocks(mlp=mlp(torch.tanh))(made)),
}


def mlp(activation: Callable[[Tensor], Tensor]) -> Mlp:
    made = Mlp(SIZES, activation).double().requires_grad_(False)
    generator = torch.Generator().manual_seed(2)
    for value in made.parameters():
        value.data = 0.5 * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return made


@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_measured_by_the_plain_pass(name: str) -> None:
    architecture, change, reason = MISFITS[name]
    made = network(**architecture)
    change(made)
    rows = by_member(law, Context(made, data_of(INPUTS)), samples=3)
    assert {row["method"] for row in rows} == {"float64"}
    assert all(reason in row["method_reason"] for row in rows)
    assert all(row["log10_residual"] == row["log10_float64"] for row in rows)


@pytest.mark.parametrize("name", FITTING)
def test_what_fits_is_not_refused_and_right(name: str) -> None:
    architecture, change = FITTING[name]
    made = network(**architecture)
    change(made)
    for x, state in zip(made.states(INPUTS), propagate(made, INPUTS)):
        steady = relative_residual(x) > 1e-4
        for got, wanted in zip(state.rest.value()[steady], residual(x)[steady]):
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9 * float(wanted.abs().max()))


def test_a_norm_written_by_hand_keeps_all_digits() -> None:
    """Far below what a plain pass could confirm, against the form that is known."""
    known, own = network(norm="rms"), network(norm="rms")
    for block in own.blocks:
        gain = block.norm1.gain
        del block.norm1
        block.norm1 = lambda x, gain=gain: rms(x) * gain
    state = begin(known, known.lift(INPUTS))
    state = rescale(state, torch.full_like(state.rest.log, -300.0))
    first, second = (step(made.blocks[0], state).rest for made in (known, own))
    torch.testing.assert_close(first.log, second.log, rtol=1e-13, atol=0)
    torch.testing.assert_close(first.unit, second.unit, rtol=1e-9, atol=1e-9)
