"""What depends on the number of a layer, and on how many there are: residuals, norms, starts and norms around a branch."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from helpers import network_of
from one_layer import network, states

from rankfall import components
from rankfall.random_streams import stream

untrained = partial(network_of, symbols=5, width=6, position="none")


SHARES = {
    "scheduled": ({"factor": 3.0, "by_layer": 0.5, "by_depth": 1.0}, lambda layer, depth: (1, 3 * layer**-0.5 / depth)),
    "deepnorm": ({}, lambda layer, depth: ((2 * depth) ** 0.25, 1)),
}


@pytest.mark.parametrize("name", SHARES)
def test_residuals_know_their_layer_and_the_depth(name: str) -> None:
    options, shares = SHARES[name]
    made = network(residual={"name": name} | options, mlp="gelu", mlp_residual="add", depth=3)
    x, branch = states(4), states(4).flip(0)
    for number, block in enumerate(made.blocks, 1):
        keep, take = shares(number, 3)
        torch.testing.assert_close(block.residual(x, branch), keep * x + take * branch)
        torch.testing.assert_close(block.mlp_residual(x, branch), x + branch)
        y = keep * x + take * block.attention(x)
        torch.testing.assert_close(block(x), y + block.mlp(y))


@pytest.mark.parametrize(("name", "shape"), [("layer_scale", (2, 1, 1, 6)), ("rezero", (2, 1, 1, 1))])
def test_residuals_with_learned_shares(name: str, shape: tuple[int, ...]) -> None:
    """Each sublayer has its own."""
    made = network(residual=name, mlp="gelu", depth=2)
    x, branch = states(4), states(4).flip(0)
    gains = [value for key, value in made.named_parameters() if "residual" in key]
    assert [tuple(value.shape) for value in gains] == [shape] * 4 and len({value.data_ptr() for value in gains}) == 4
    for part, gain in zip([one for block in made.blocks for one in (block.residual, block.mlp_residual)], gains):
        for k, b, t in ((0, 0, 0), (1, 2, 3)):
            want = [float(x[k, b, t, i] + gain[k].flatten()[i % shape[-1]] * branch[k, b, t, i]) for i in range(6)]
            torch.testing.assert_close(part(x, branch)[k, b, t], torch.tensor(want, dtype=torch.float64))


def test_a_normalised_network_goes_a_share_of_the_way_on_the_sphere() -> None:
    made = network(residual={"name": "normalised", "start": 0.25}, norm="none", mlp="none", depth=1)
    x, branch = states(4), 7 * states(4).flip(0)

    def on_sphere(values: np.ndarray) -> np.ndarray:
        return np.asarray(values / np.sqrt((values**2).mean()))

    (gain,) = (value.detach() for name, value in made.named_parameters() if "residual" in name)
    output = made.blocks[0].residual(x, branch).detach()
    for k, b, t in ((0, 0, 0), (1, 2, 3)):
        state, target = x[k, b, t].numpy(), on_sphere(branch[k, b, t].numpy())
        expected = on_sphere(state + gain[k].flatten().numpy() * (target - state))
        np.testing.assert_allclose(output[k, b, t].numpy(), expected, rtol=1e-10)


def test_a_delta_rewrites_the_direction_of_the_branch() -> None:
    """Against the matrix 1 - b k k^T, and its eigenvalue."""
    made = network(residual={"name": "delta_skip", "start": 0.5}, mlp="none").blocks[0].residual
    x, branch = states(4), 7 * states(4).flip(0)
    for k, b, t in ((0, 0, 0), (1, 2, 3)):
        state, direction = x[k, b, t], branch[k, b, t] / branch[k, b, t].norm()
        unit = state / state.square().mean().sqrt()
        gate = float(unit @ made.gate.weight[k, :, 0] + made.gate.bias[k, 0, 0])
        share = 2 / (1 + 3 * math.exp(-gate))  # 2 sigmoid(gate + log(1 / 3))
        wanted = float(unit @ made.value.weight[k, :, 0] + made.value.bias[k, 0, 0])
        matrix = torch.eye(6, dtype=x.dtype) - share * torch.outer(direction, direction)
        torch.testing.assert_close(made(x, branch)[k, b, t], matrix @ state + share * wanted * direction)
        torch.testing.assert_close(torch.linalg.det(matrix), torch.tensor(1 - share, dtype=x.dtype))


def test_derf_is_its_formula() -> None:
    made = network(norm="derf", norm_placement="pre").blocks[0].norm1
    x = states(4)
    for k, b, t in ((0, 0, 0), (1, 2, 3)):
        values = [math.erf(float(made.slope[k] * v + made.shift[k])) for v in x[k, b, t]]
        want = torch.tensor(values, dtype=x.dtype) * made.gain[k, 0, 0] + made.bias[k, 0, 0]
        torch.testing.assert_close(made(x)[k, b, t], want)


@pytest.mark.parametrize(("mlp", "alpha"), [("gelu", 4), ("none", 2)])
def test_a_highway_scales_its_skip_by_the_number_of_sublayers(mlp: str, alpha: int) -> None:
    made = network(block="highway", norm="layer", norm_placement="post", mlp=mlp, residual="add", depth=2)
    x = states(4)
    for block in made.blocks:
        want = block.norm1(alpha * x + block.attention(block.before1(x)))
        if mlp != "none":
            want = block.norm2(alpha * want + block.mlp(block.before2(want)))
        torch.testing.assert_close(block(x), want)


@pytest.mark.parametrize("of", ["rms", "layer"])
def test_norms_by_depth(of: str) -> None:
    made = untrained(norm={"name": "by_depth", "of": of, "power": 0.5}, norm_placement="pre", mlp="gelu", depth=3)
    alone = untrained(norm=of, norm_placement="pre", mlp="gelu", depth=3)
    x = states(4)
    for number, (block, other) in enumerate(zip(made.blocks, alone.blocks), 1):
        for norm, plain in ((block.norm1, other.norm1), (block.norm2, other.norm2)):
            torch.testing.assert_close(norm(x), plain(x) / math.sqrt(number))
            torch.testing.assert_close(norm.plain(x), plain.plain(x) / math.sqrt(number))
    torch.testing.assert_close(made.norm_out(x), alone.norm_out(x))


def test_the_start_of_deepnorm() -> None:
    """Deviations of large draws: Xavier's for queries and keys, (8 L)^(-1/4) times that for value, output and MLP maps."""
    init, shape = components.load("init", "deepnorm"), (300, 500)
    for role, gain in (("query", 1.0), ("key", 1.0), ("value", 0.5), ("output", 0.5), ("mlp", 0.5)):
        drawn = init(stream(0, role), role, "weight", shape, 300, 2)
        assert abs(drawn.std() / (gain * math.sqrt(2 / 800)) - 1) < 0.01 and abs(drawn.mean()) < 1e-3
    assert abs(init(stream(0, "x"), "embedding", "weight", shape, 300, 2).std() / 0.02 - 1) < 0.01
    assert not init(stream(0, "x"), "query", "bias", shape, 300, 2).any()
    assert abs(init(stream(0, "x"), "mlp", "weight", shape, 300, 2, beta=3.0).std() / (3 * 0.05) - 1) < 0.01
    deep, shallow = (untrained(init="deepnorm", depth=depth).blocks[0].attention for depth in (32, 2))
    torch.testing.assert_close(deep.value.weight * 2, shallow.value.weight)
    assert torch.equal(deep.query.weight, shallow.query.weight) and isinstance(drawn, np.ndarray)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_norms_around_the_branch(placement: str) -> None:
    made = network(block="peri", norm="layer", norm_placement=placement, mlp="gelu", residual="add", depth=2)
    x = states(4)
    for block in made.blocks:
        if placement == "pre":
            y = x + block.after1(block.attention(block.norm1(x)))
            want = y + block.after2(block.mlp(block.norm2(y)))
        else:
            y = block.norm1(x + block.after1(block.attention(x)))
            want = block.norm2(y + block.after2(block.mlp(y)))
        torch.testing.assert_close(block(x), want)
    names = [name for name, _ in made.blocks[0].named_parameters() if name.endswith("gain")]
    assert names == ["norm1.gain", "norm2.gain", "after1.gain", "after2.gain"]
    bare = network(block="peri", norm="none", residual="add", mlp="none")
    torch.testing.assert_close(bare.blocks[0](x), x + bare.blocks[0].attention(x))
