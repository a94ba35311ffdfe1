"""Dynamic hyper-connections: their numbers against loops over tokens and streams, the network that they start as, and how far they move."""

import math
from typing import Any

import pytest
import torch
from one_layer import network, states

KINDS: list[dict[str, Any]] = [{}, {"streams": 1}, {"read": "mean", "streams": 3}]


def dynamic(options: dict[str, Any] | None = None, **parts: Any) -> Any:
    return network(block={"name": "dynamic_hyper"} | (options or {}), residual="add", **parts)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_numbers_are_what_streams_say_and_their_static_part(options: dict[str, Any]) -> None:
    """One number at a time, from the equation."""
    made = dynamic(options, mlp="gelu")
    n, x = options.get("streams", 4), states(4, width=6 * options.get("streams", 4))
    around = made.blocks[0].around2
    streams = x.unflatten(-1, (n, 6))
    found = around(streams)
    static = around.static()
    generator = torch.Generator().manual_seed(2)
    for _ in range(12):
        member, sample, token, m, k = (int(torch.randint(top, (), generator=generator)) for top in (2, 3, 4, n, n))

        def said(stream: int, vector: torch.Tensor, at: tuple[int, ...] = (member, sample, token)) -> float:
            values = streams[at][stream]
            values = (values - values.mean()) / values.var(unbiased=False).sqrt()
            return math.tanh(float(values @ vector))

        scale, write_scale = float(around.scale[member]), float(around.write_scale[member])
        read = float(static[0][member].flatten()[m]) + scale * said(m, around.read[member, 0, 0, :, 0])
        write = float(static[1][member].flatten()[m]) + write_scale * said(m, around.write[member, 0, 0, :, 0])
        mix = float(static[2][member, 0, 0, m, k]) + scale * said(k, around.mix[member, 0, 0, :, m])
        here = (member, sample, token)
        assert float(found[0][here][0, m]) == pytest.approx(read, abs=1e-9)
        assert float(found[1][here][m, 0]) == pytest.approx(write, abs=1e-9)
        assert float(found[2][here][m, k]) == pytest.approx(mix, abs=1e-9)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_streams_are_read_written_and_mixed(placement: str) -> None:
    made, n = dynamic(norm="layer", norm_placement=placement, mlp="gelu", depth=2), 4
    wide = made.blocks[0].widen(states(4))
    streams = list(wide.unflatten(-1, (n, -1)).unbind(-2))
    for block in made.blocks:
        wide = block(wide)
        for function, norm, around in (
            (block.attention, block.norm1, block.around1),
            (block.mlp, block.norm2, block.around2),
        ):
            read, write, mix = around(torch.stack(streams, -2))
            h = sum(read[..., 0, m, None] * streams[m] for m in range(n))
            branch = function(norm(h) if placement == "pre" else h)
            streams = [
                sum(mix[..., m, k, None] * streams[k] for k in range(n)) + write[..., m, 0, None] * branch
                for m in range(n)
            ]
            if placement == "post":
                streams = [norm(stream) for stream in streams]
        torch.testing.assert_close(wide, torch.cat(streams, -1), rtol=1e-10, atol=1e-10)
