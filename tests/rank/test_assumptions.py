"""Components that anybody may write: those that centred forms do not fit are found out, those that they do fit are not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers import cells, data_of
from torch import Tensor
from torch.nn import functional

from rankfall.measure.context import Context
from rankfall.nets.blocks.attention import Attention as Block
from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.network import Network, Shape, build
from rankfall.nets.norms.layer import Layer
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes
from rankfall.rank.centred.assumptions import Unknown
from rankfall.rank.centred.block import propagate, step
from rankfall.rank.centred.state import begin, rescale
from rankfall.rank.law.measure import law
from rankfall.rank.orders import measure as order_table
from rankfall.rank.orders import slopes as order_slopes
from rankfall.rank.residual import relative_residual, residual

SIZES = Sizes(2, 6, 3, 8, 2, 4, 8, 1, 1)  # members, length, depth, width, heads, ...
INPUTS = torch.stack([torch.randperm(8, generator=torch.Generator().manual_seed(s))[:6] for s in range(3)]).expand(
    2, 3, 6
)
BAND = (torch.arange(6) - torch.arange(6).unsqueeze(1)) % 6 < 3


class Biased(Position):
    def __init__(self, bias: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.changed = bias

    def bias(self, logits: Tensor) -> Tensor:
        return self.changed(logits)


class Stretched(Position):
    """A rotation that turns nothing."""

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * q, k


class Swapped(Block):
    def forward(self, x: Tensor, drop: Any = None) -> Tensor:
        return 0.5 * x + super().forward(x)


class Doubled(Layer):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x - x.mean(-2, keepdim=True) / 2)


def network(spread: float = 0.3, **architecture: Any) -> Network:
    plain = {"depth": 8, "heads": 2, "width": 8, "norm": "none", "residual": "none", "position": "none"}
    cell = cells(architecture=plain | architecture)[0]
    made = build(cell.architecture, Shape("tokens", "classes", length=6, size_in=8, size_out=8), 2, torch.float64)
    generator = torch.Generator().manual_seed(1)
    for value in made.parameters():
        value.data = spread * torch.randn(value.shape, generator=generator, dtype=value.dtype)
    return made.requires_grad_(False)


def positioned(bias: Callable[[Tensor], Tensor]) -> Callable[[Network], None]:
    def change(made: Network) -> None:
        for block in made.blocks:
            block.attention.position = Biased(bias)

    return change


def blocks(**parts: Any) -> Callable[[Network], None]:
    def change(made: Network) -> None:
        for block in made.blocks:
            for name, part in parts.items():
                block._modules.pop(name, None)  # where a module was, only a module may follow
                setattr(block, name, part)

    return change


def of_attention(**parts: Any) -> Callable[[Network], None]:
    def change(made: Network) -> None:
        for block in made.blocks:
            for name, part in parts.items():
                setattr(block.attention, name, part)

    return change


def subclassed(made: Network) -> None:
    for block in made.blocks:
        block.__class__ = Swapped


def renormed(made: Network) -> None:
    for block in made.blocks:
        block.norm1.__class__ = Doubled


def patched(made: Network) -> None:
    """A known norm that computes something else: no trial of parts sees that, only the plain pass."""
    for block in made.blocks:
        block.norm1.forward = lambda x: functional.layer_norm(x.abs(), x.shape[-1:])


def gate(x: Tensor, branch: Tensor) -> Tensor:
    return x + branch.sigmoid() * branch


def mixing(x: Tensor) -> Tensor:
    return x - 0.9 * x.mean(-2, keepdim=True)


def causally(x: Tensor) -> Tensor:
    return x - x.cumsum(-2) / torch.arange(1, x.shape[-2] + 1).view(-1, 1)


def by_place(x: Tensor) -> Tensor:
    return x * torch.linspace(1, 2, x.shape[-2], dtype=x.dtype).view(-1, 1)


def over_samples(x: Tensor) -> Tensor:
    return x - x.mean(1, keepdim=True) / 2


def rms(x: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-12).rsqrt()


MISFITS: dict[str, tuple[dict[str, Any], Callable[[Network], None], str]] = {
    "scores scaled": ({}, positioned(lambda scores: 5 * scores), "rows of attention weights"),
    "scores capped": ({}, positioned(lambda scores: 20 * (scores / 20).tanh()), "rows of attention weights"),
    "keys scaled": ({}, of_attention(position=Stretched()), "rows of attention weights"),
    "keys hidden from all": (
        {},
        of_attention(mask=lambda length, device: torch.arange(6).expand(6, 6) < 4),
        "rows of attention weights",
    ),
    "ring of places": (
        {"normaliser": "l2", "depth": 60},
        of_attention(mask=lambda length, device: BAND),
        "rows of attention weights",
    ),
    "residual with a gate": ({}, blocks(residual=gate), "residual is not"),
    "residual with a constant": ({}, blocks(residual=lambda x, branch: x + branch + 1), "residual is not"),
    "residual over tokens": ({}, blocks(residual=lambda x, branch: mixing(x) + branch), "residual is not"),
    "residual by place": ({}, blocks(residual=lambda x, branch: by_place(x) + branch), "residual is not"),
    "norm over tokens": ({}, blocks(norm1=mixing), "norm does not act"),
    "norm over earlier tokens": ({}, blocks(norm1=causally), "norm does not act"),
    "norm by place": ({}, blocks(norm1=by_place), "norm does not act"),
    "norm over samples": ({}, blocks(norm1=over_samples), "norm does not act"),
    "norm made from another": ({"norm": "layer"}, renormed, "norm does not act"),
    "MLP over tokens": ({"mlp": "gelu"}, blocks(mlp=lambda x: mixing(x).tanh()), "MLP does not act"),
    "activation over tokens": (
        {},
        lambda made: blocks(
            mlp=mlp(lambda x: mixing(x).tanh()), norm2=lambda x: x, mlp_residual=lambda x, branch: branch
        )(made),
        "MLP does not act",
    ),
    "known norm that is not": ({"norm": "layer", "residual": "add"}, patched, "ordinary pass"),
}

FITTING: dict[str, tuple[dict[str, Any], Callable[[Network], None]]] = {
    "block of another order": ({}, subclassed),
    "key bias": ({}, positioned(lambda scores: scores + torch.linspace(0, 1, 6, dtype=scores.dtype))),
    "scores scaled by distance": ({}, positioned(lambda scores: scores * BAND.double() + BAND)),
    "residual by feature": (
        {},
        blocks(residual=lambda x, branch: torch.linspace(0, 1, 8, dtype=x.dtype) * x + 0.5 * branch),
    ),
    "norm of each token": ({}, blocks(norm1=rms)),
    "MLP of each token": ({"mlp": "gelu"}, blocks(mlp=lambda x: x.tanh())),
    "smooth activation": ({"mlp": "gelu"}, lambda made: blocks(mlp=mlp(torch.tanh))(made)),
    "softmax by hand behind a mask": ({"mask": "causal"}, of_attention(normaliser=lambda scores: scores.softmax(-1))),
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
    rows = law(Context(made, data_of(INPUTS)), samples=3)
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


def test_slopes_must_be_known() -> None:
    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.tanh()

    for norm, reason in (
        (Backward.apply, "no forward derivative"),
        (lambda x: x / x.detach().norm(dim=-1, keepdim=True), "slope"),
    ):
        made = network()
        blocks(norm1=norm)(made)
        with pytest.raises(Unknown, match=reason):
            propagate(made, INPUTS)


def test_a_member_that_is_not_a_number_leaves_the_others_their_form() -> None:
    made = network(norm="layer", mlp="gelu", residual="add")
    for value in made.blocks[1].parameters():
        value.data[0] = torch.nan
    assert propagate(made, INPUTS)[-1].rest.log[1].isfinite().all()


def test_orders_of_misfits_come_from_the_plain_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores five times as long change no order: cubic as without, over the decades that float64 resolves."""
    subject = order_table.Composition(order_table.ALONE, "attention alone", True)

    def stretched(*arguments: Any) -> Network:
        made = design(*arguments)
        positioned(lambda scores: 1.5 * scores)(made)
        return made

    design = order_slopes.networks
    monkeypatch.setattr(order_slopes, "networks", stretched)
    row = order_table.entry(subject, 4, 6)[0]
    assert row["method"] == "float64"
    assert row["order"] == pytest.approx(3, abs=0.1)
