"""Check hyper-connections against loops over streams, the network that they start as, and what doubly stochastic maps do to them."""

import math
from typing import Any

import pytest
import torch
from one_layer import network, states

KINDS: list[dict[str, Any]] = [
    {"name": "hyper"},
    {"name": "hyper", "mixing": "doubly_stochastic"},
    {"name": "hyper", "streams": 1},
    {"name": "hyper", "read": "mean", "streams": 3},
    {"name": "dynamic_hyper"},
    {"name": "dynamic_hyper", "streams": 1},
    {"name": "dynamic_hyper", "read": "mean", "streams": 3},
]


def hyper(block: dict[str, Any], **parts: Any) -> Any:
    return network(block=block, residual="add", **parts)


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_streams_are_read_written_and_mixed(options: dict[str, Any], placement: str) -> None:
    made = hyper(options, norm="layer", norm_placement=placement, mlp="gelu", depth=2)
    n, x = options.get("streams", 4), states(4)
    streams, wide = [x] * n, made.blocks[0].widen(x)
    for block in made.blocks:
        wide = block(wide)
        for function, norm, around in (
            (block.attention, block.norm1, block.around1),
            (block.mlp, block.norm2, block.around2),
        ):
            read, write, mix = around(torch.stack(streams, -2)) if options["name"] == "dynamic_hyper" else around()
            h = sum(read[..., 0, m, None] * streams[m] for m in range(n))
            branch = function(norm(h) if placement == "pre" else h)
            streams = [
                sum(mix[..., m, k, None] * streams[k] for k in range(n)) + write[..., m, 0, None] * branch
                for m in range(n)
            ]
            streams = [norm(stream) for stream in streams] if placement == "post" else streams
        torch.testing.assert_close(wide, torch.cat(streams, -1), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(made.blocks[0].narrow(wide), sum(streams) / n)


@pytest.mark.parametrize("options", KINDS[4:], ids=str)
def test_numbers_that_depend_on_the_token_are_the_formula(options: dict[str, Any]) -> None:
    """A static part, plus a share of tanh of the normed stream times a vector; one number at a time."""
    n = options.get("streams", 4)
    around, x = hyper(options, mlp="gelu").blocks[0].around2, states(4, width=6 * n)
    streams, static = x.unflatten(-1, (n, 6)), around.static()
    numbers = around(streams)
    generator = torch.Generator().manual_seed(2)
    for _ in range(12):
        member, sample, token, m, k = (int(torch.randint(top, (), generator=generator)) for top in (2, 3, 4, n, n))
        at = (member, sample, token)

        def moved(stream: int, vector: torch.Tensor, at: tuple[int, ...] = at) -> float:
            values = streams[at][stream]
            return math.tanh(float((values - values.mean()) / values.var(unbiased=False).sqrt() @ vector))

        scale, write_scale = float(around.scale[member]), float(around.write_scale[member])
        read = float(static[0][member].flatten()[m]) + scale * moved(m, around.read[member, 0, 0, :, 0])
        write = float(static[1][member].flatten()[m]) + write_scale * moved(m, around.write[member, 0, 0, :, 0])
        mix = float(static[2][member, 0, 0, m, k]) + scale * moved(k, around.mix[member, 0, 0, :, m])
        computed = numbers[0][at][0, m], numbers[1][at][m, 0], numbers[2][at][m, k]
        assert [float(number) for number in computed] == pytest.approx([read, write, mix], abs=1e-9)


@pytest.mark.parametrize(
    "options", [KINDS[1], {"name": "hyper", "streams": 3}, {"name": "hyper", "read": "mean"}], ids=str
)
def test_at_first_they_are_one_network_with_skips(options: dict[str, Any]) -> None:
    """Maps as they start, all other parameters the same."""
    parts: dict[str, Any] = {"norm": "layer", "norm_placement": "pre", "mlp": "gelu", "depth": 3}
    made, plain = hyper(options, **parts), network(residual="add", **parts)
    values = dict(made.named_parameters())
    for name, value in values.items():
        if "around" in name:
            value.fill_(value.initial.constant)  # type: ignore[attr-defined]
    for name, value in plain.named_parameters():
        value.data = values[name].clone()
    tokens = torch.randint(5, (2, 3, 6))
    torch.testing.assert_close(made(tokens), plain(tokens), rtol=1e-10, atol=1e-10)
    assert made.states(tokens)[1].shape == (2, 3, 6, 6 * options.get("streams", 4))


def test_doubly_stochastic_maps_are_and_their_products_make_streams_equal() -> None:
    made = hyper({"name": "hyper", "mixing": "doubly_stochastic", "sharpness": 1.0}, depth=24)
    product = torch.eye(4, dtype=torch.float64)
    for block in made.blocks:
        mix = block.around1()[2][0, 0, 0]
        torch.testing.assert_close(mix.sum(0), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-8)
        torch.testing.assert_close(mix.sum(1), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-12)
        assert (mix > 0).all()
        product = mix @ product
    assert (product - 0.25).abs().max() < 1e-4  # the mean of all streams, in each
