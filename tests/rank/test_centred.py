"""Check centred propagation against 400-digit arithmetic and against the plain float64 forward pass."""

import math
from typing import Any

import exact
import mpmath as mp
import pytest
import torch
from helpers import cells

from rankfall.nets.network import Network, Shape, build
from rankfall.rank.centred.attention import is_vanished, propagate, step, usual_size
from rankfall.rank.centred.scaled import Scaled, State, add, begin, plain, rescale
from rankfall.rank.centred.weights import Weights

SHAPE = Shape("tokens", "classes", length=4, size_in=6, size_out=6)
INPUTS = torch.tensor([[[0, 1, 2, 3]]])
URPE_DRAWN = {"name": "urpe", "random": True}
NORMALISERS = ("softmax", "l2", "swish_l2", "exp", "sigmoid", "relu2", "softmax_off_by_one", "urpe", URPE_DRAWN)
DERIVED = ("log_n", "relu2_sum", "zero_sum", "cosine", "key_normalised")  # whose centred form nobody has written


def each(*normalisers: Any) -> pytest.MarkDecorator:
    names = [name if isinstance(name, str) else "urpe_drawn" for name in normalisers]
    return pytest.mark.parametrize("normaliser", normalisers, ids=names)


def network(spread: float, **architecture: Any) -> Network:
    """A small float64 network with every parameter drawn, biases and gains too."""
    plain = {"depth": 1, "heads": 2, "width": 4, "norm": "none", "residual": "none", "position": "none"}
    cell = cells(architecture=plain | architecture)[0]
    made = build(cell.architecture, SHAPE, 1, torch.float64)
    generator = torch.Generator().manual_seed(1)
    for name, value in made.named_parameters():
        drawn = spread * torch.randn(value.shape, generator=generator, dtype=value.dtype)
        equal = name.endswith("excess") and architecture["normaliser"] != URPE_DRAWN
        value.data = torch.full_like(drawn, 0.3) if equal else drawn
    return made.requires_grad_(False)


def whole(state: State) -> list[list[Any]]:
    """1 x^T + R without rounding, sentinels in their places."""
    scale = mp.exp(mp.mpf(float(state.rest.log)))
    tokens = [
        [mp.mpf(c) + mp.mpf(u) * scale for c, u in zip(state.common[0, 0, 0].tolist(), row)]
        for row in state.rest.unit[0, 0].tolist()
    ]
    places = {int(i): row for i, row in zip(state.tokens, tokens)}
    places |= {int(i): row for i, row in zip(state.others, exact.matrix(state.sentinels[0, 0]))}
    return [places[i] for i in sorted(places)]


def error_of_block(made: Network, log10: float) -> tuple[float, float]:
    """One block on a state whose R has size 10^log10: relative error of the new R, and its own log10 size."""
    with mp.workdps(exact.DIGITS):
        state = begin(made, made.lift(INPUTS))
        state = rescale(state, torch.full_like(state.rest.log, log10 * math.log(10)))
        got = step(made.blocks[0], state)
        normaliser = made.blocks[0].attention.normaliser
        module = type(normaliser).__module__.rpartition(".")[2]
        name = normaliser.func.__name__ if hasattr(normaliser, "func") else module
        output = exact.block(made.blocks[0], name, whole(state))
        wanted = exact.rest([output[i] for i in state.tokens.tolist()])
        return exact.distance(got.rest.unit[0, 0], float(got.rest.log), wanted), exact.size_log10(wanted)


@pytest.mark.parametrize("log10", [-1, -100])
@each(*NORMALISERS, *DERIVED)
def test_normaliser_keeps_its_digits(normaliser: Any, log10: float) -> None:
    """One layer of attention alone: the hardest case, where only what is left after all cancellation counts."""
    error, size = error_of_block(network(0.7, normaliser=normaliser), log10)
    assert error < 1e-11
    if normaliser in ("softmax", "l2", "swish_l2", "urpe"):
        assert size < 3 * log10 + 6  # the law that these obey: the rule was tested where it matters


@each(*NORMALISERS)
@pytest.mark.parametrize(
    "surroundings",
    [
        {"position": "toeplitz"},
        {"position": "symmetric", "mask": "causal"},
        {"mask": {"name": "local", "window": 1}},
        {"sentinels": "bos"},
        {"sentinels": "bos", "position": "toeplitz", "mask": "causal"},
    ],
    ids=lambda s: "+".join(v if isinstance(v, str) else v["name"] for v in s.values()),
)
def test_positions_masks_and_sentinels(surroundings: dict[str, Any], normaliser: Any) -> None:
    made = network(0.5 if normaliser != "relu2" else 0.8, normaliser=normaliser, **surroundings)
    assert error_of_block(made, -30)[0] < 1e-11


@pytest.mark.parametrize("log10", [-1, -50])
@pytest.mark.parametrize(
    "parts",
    [
        {"residual": "add"},
        {"residual": "scaled"},
        {"norm": "layer"},
        {"norm": "rms", "residual": "depth_scaled"},
        {"norm": "layer", "residual": "add", "norm_placement": "pre", "mlp": "gelu"},
        {"norm": {"name": "column", "eps": 0.0}},
        {"norm": "column"},
        {"mlp": "gelu"},
        {"mlp": "relu", "residual": "none", "mlp_residual": "add"},
        {"mlp": "gelu", "norm": "layer", "residual": "add"},
        {"mlp": "relu", "sentinels": "bos", "norm": "layer"},
    ],
    ids=lambda parts: "+".join(str(v) if isinstance(v, str) else f"{v['name']}_no_eps" for v in parts.values()),
)
def test_token_wise_parts(parts: dict[str, Any], log10: float) -> None:
    error, _ = error_of_block(network(0.7, normaliser="softmax", **parts), log10)
    assert error < 1e-10


def test_cubic_law_to_1e_200_in_a_chain_of_layers() -> None:
    """Errors may not build up over layers: five layers of plain attention, the last beyond 1e-200."""
    made = network(0.5, normaliser="softmax", depth=5)
    states = propagate(made, INPUTS)
    with mp.workdps(exact.DIGITS):
        x = exact.matrix(made.lift(INPUTS)[0, 0])
        for block, state in zip(made.blocks, states[1:]):
            x = exact.block(block, "softmax", x)
            assert exact.distance(state.rest.unit[0, 0], float(state.rest.log), exact.rest(x)) < 1e-10
        assert exact.size_log10(exact.rest(x)) < -200


@each(*NORMALISERS)
def test_agrees_with_the_plain_forward_pass_where_that_is_accurate(normaliser: Any) -> None:
    """With rotations, which have no exact form here."""
    parts = {"depth": 3, "position": "rope", "mlp": "gelu"}
    made = network(0.25 if normaliser == "exp" else 0.4, normaliser=normaliser, **parts)
    for x, state in zip(made.states(INPUTS), propagate(made, INPUTS)):
        direct = x - x.mean(-2, keepdim=True)
        if direct.abs().max() < 1e-6 * x.abs().max():
            break
        torch.testing.assert_close(state.rest.value(), direct, rtol=1e-9, atol=1e-9 * float(direct.abs().max()))


def test_the_usual_size_of_weights_is_that_behind_the_mask() -> None:
    """Behind a causal mask the first token has a single key, whose softmax is one."""
    made = network(0.3, mask="causal", normaliser="softmax")
    assert usual_size(made.blocks[0].attention, made.lift(INPUTS)).tolist() == [[1.0]]


def test_weights_have_vanished_beside_what_they_are_elsewhere() -> None:
    """A normaliser whose weights are small everywhere is as exact as another; weights of 1e-11 of one that gives order one are not."""
    made = network(0.3, normaliser="softmax")
    attention, full = made.blocks[0].attention, made.lift(INPUTS)
    small = Weights(plain(torch.full((1, 1, 2, 4, 4), 1e-11, dtype=torch.float64)), None)
    assert is_vanished(attention, small, full)
    attention.normaliser = lambda x: 1e-8 * x.softmax(-1)
    assert not is_vanished(attention, small, full)


def test_rope_rows_differ_at_order_one() -> None:
    """By its law, where the plain pass does not show R any more."""
    made = network(0.7, normaliser="softmax", position="rope")
    state = begin(made, made.lift(INPUTS))
    small, smaller = (step(made.blocks[0], rescale(state, torch.full((1, 1), log))) for log in (-20.0, -200.0))
    assert float(small.rest.log - smaller.rest.log) == pytest.approx(180, rel=1e-6)
    torch.testing.assert_close(small.rest.unit, smaller.rest.unit, rtol=1e-6, atol=1e-6)


def test_identical_rows_stay_identical() -> None:
    """R = 0 is kept as an exact zero, log -inf, where the architecture has no way to tell tokens apart."""
    made = network(0.7, normaliser="softmax", depth=2, mlp="gelu", norm="layer", residual="add")
    last = propagate(made, torch.full((1, 1, 4), 3))[-1]
    assert float(last.rest.log) == -math.inf
    assert not last.rest.unit.any()


def test_scaled_sum_keeps_the_larger() -> None:
    one, two = (Scaled(torch.ones(1, 1, 2), torch.full((1, 1), log, dtype=torch.float64)) for log in (-5000.0, -5001.0))
    total = add(one, two)
    assert float(total.log) == pytest.approx(-5000 + math.log(1 + math.exp(-1)), rel=1e-15)
