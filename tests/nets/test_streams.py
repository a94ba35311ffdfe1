"""Hyper-connections: streams against loops, the network that they start as, and what doubly stochastic maps do to them."""

from typing import Any

import pytest
import torch
from one_layer import network, states
from torch import Tensor

MIXED: list[dict[str, Any]] = [{}, {"mixing": "doubly_stochastic"}, {"streams": 1}, {"read": "mean", "streams": 3}]


def hyper(options: dict[str, Any] | None = None, **parts: Any) -> Any:
    return network(block={"name": "hyper"} | (options or {}), residual="add", **parts)


@pytest.mark.parametrize("options", MIXED, ids=str)
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_streams_are_read_written_and_mixed(options: dict[str, Any], placement: str) -> None:
    made = hyper(options, norm="layer", norm_placement=placement, mlp="gelu", depth=2)
    n, x = options.get("streams", 4), states(4)
    streams = [x] * n
    wide = made.blocks[0].widen(x)
    for block in made.blocks:
        wide = block(wide)
        for function, norm, around in (
            (block.attention, block.norm1, block.around1),
            (block.mlp, block.norm2, block.around2),
        ):
            read, write, mix = (part.reshape(2, *shape) for part, shape in zip(around(), ((n,), (n,), (n, n))))

            def times(share: Tensor) -> Tensor:
                return share.view(2, 1, 1, 1)

            h = sum(times(read[:, m]) * streams[m] for m in range(n))
            branch = function(norm(h) if placement == "pre" else h)
            streams = [
                sum(times(mix[:, m, k]) * streams[k] for k in range(n)) + times(write[:, m]) * branch for m in range(n)
            ]
            if placement == "post":
                streams = [norm(stream) for stream in streams]
        torch.testing.assert_close(wide, torch.cat(streams, -1), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(made.blocks[0].narrow(wide), sum(streams) / n)


@pytest.mark.parametrize("options", [{"streams": 3}, {"read": "mean"}, {"mixing": "doubly_stochastic"}], ids=str)
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
    made = hyper({"mixing": "doubly_stochastic", "sharpness": 1.0}, depth=24)
    product = torch.eye(4, dtype=torch.float64)
    for block in made.blocks:
        _, _, mix = block.around1()
        mix = mix[0, 0, 0]
        torch.testing.assert_close(mix.sum(0), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-8)
        torch.testing.assert_close(mix.sum(1), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-12)
        assert (mix > 0).all()
        product = mix @ product
    assert (product - 0.25).abs().max() < 1e-4  # the mean of all streams, in each
