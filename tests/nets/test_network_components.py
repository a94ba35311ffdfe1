"""Check embeddings, positions, masks, residuals and norms against their definitions."""

import math
from dataclasses import replace

import pytest
import torch

from rankfall import components
from rankfall.nets.embeddings.mapped_token import MappedToken
from rankfall.nets.primitives import Sizes

SIZES = Sizes(members=2, length=5, depth=9, width=6, heads=3, head_width=4, mlp_width=6, size_in=1, size_out=1)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def test_rope_leaves_an_odd_coordinate() -> None:
    odd = Sizes(members=1, length=3, depth=1, width=3, heads=1, head_width=3, mlp_width=3, size_in=1, size_out=1)
    x = drawn(1, 1, 1, 3, 3)
    got, _ = components.load("position", "rope")(odd).rotate(x, x)
    torch.testing.assert_close(got[..., 2], x[..., 2], rtol=0, atol=0)
    torch.testing.assert_close(got.norm(dim=-1), x.norm(dim=-1))


def test_local_mask() -> None:
    local = components.load("mask", "local")
    assert local(4, window=1).int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert local(4, window=2, causal=True).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]
    assert torch.equal(local(5, window=4), torch.ones(5, 5, dtype=torch.bool))


@pytest.mark.parametrize("causal", [False, True])
def test_dilated_mask(causal: bool) -> None:
    dilated = components.load("mask", "dilated")
    for length, window, rate in ((1, 1, 2), (7, 1, 2), (7, 2, 3), (6, 0, 2), (6, 9, 1)):
        got = dilated(length, window=window, rate=rate, causal=causal)
        for i in range(length):
            seen = {i - rate * step for step in range(0 if causal else -window, window + 1)}
            assert set(got[i].nonzero().flatten().tolist()) == seen & set(range(length))
    near = components.load("mask", "local")(7, window=2, causal=causal)
    assert torch.equal(dilated(7, window=2, rate=1, causal=causal), near)
    if not causal:
        assert torch.equal(dilated(9, window=2, rate=3).flip(0, 1), dilated(9, window=2, rate=3))


def test_cls_and_sep_stand_around_the_sequence_and_are_cut_off_again() -> None:
    ends = components.load("sentinels", "cls_sep")(SIZES).double()
    ends.first.data, ends.last.data = drawn(2, 1, 1, 6), drawn(2, 1, 1, 6).flip(-1)
    x = drawn(2, 4, 5, 6)
    longer = ends.add(x)
    assert torch.equal(ends.strip(longer), x) and longer.shape == (2, 4, 7, 6)
    assert torch.equal(longer[:, :, 0], ends.first[:, 0].expand(2, 4, 6)) and torch.equal(
        longer[:, :, 6], ends.last[:, 0].expand(2, 4, 6)
    )
    described = components.describe("sentinels", "cls_sep")
    assert described is not None and described.facts["COUNT"] == 2


def test_residuals() -> None:
    x, branch = drawn(2, 3), drawn(2, 3).flip(0)
    torch.testing.assert_close(components.load("residual", "scaled")(x, branch, 9, scale=0.25), x / 4 + branch)
    torch.testing.assert_close(components.load("residual", "depth_scaled")(x, branch, 9), x + branch / 3)
    torch.testing.assert_close(components.load("residual", "convex")(x, branch, 9, alpha=0.2), 0.8 * x + 0.2 * branch)


def test_rms_norm_is_torchs() -> None:
    rms = components.load("norm", "rms")(SIZES, eps=1e-5).double()
    rms.gain.data = drawn(2, 1, 1, 6)
    x = 3 * drawn(2, 4, 5, 6) + 1
    for k in range(2):
        want = torch.nn.functional.rms_norm(x[k], (6,), rms.gain[k].flatten(), eps=1e-5)
        torch.testing.assert_close(rms(x)[k], want, rtol=1e-12, atol=1e-12)


def test_column_norm_scales_features_over_tokens() -> None:
    """Each feature has mean 0 and variance 1 over the tokens of a sample; it is the layer norm of the transposed matrix."""
    column = components.load("norm", "column")(SIZES).double()
    column.gain.data, column.bias.data = torch.ones(2, 1, 1, 6).double(), torch.zeros(2, 1, 1, 6).double()
    x = 3 * drawn(2, 4, 5, 6) + 1
    want = torch.nn.functional.layer_norm(x.transpose(-1, -2), (5,), eps=1e-12).transpose(-1, -2)
    torch.testing.assert_close(column(x), want, rtol=1e-10, atol=1e-12)
    column.gain.data, column.bias.data = drawn(2, 1, 1, 6), drawn(2, 1, 1, 6).flip(-1)
    torch.testing.assert_close(column(x), want * column.gain + column.bias, rtol=1e-10, atol=1e-12)


def test_swiglu_is_its_formula() -> None:
    swiglu = components.load("mlp", "swiglu")(replace(SIZES, mlp_width=5)).double()
    for number, value in enumerate(swiglu.parameters()):
        value.data = drawn(*value.shape).roll(number, -1)
    x = drawn(2, 3, 4, 6)
    got = swiglu(x)
    for k, b, t in ((0, 0, 0), (1, 2, 3), (0, 1, 2)):
        gate, up = ((x[k, b, t] @ part.weight[k]).tolist() for part in (swiglu.gate, swiglu.up))
        hidden = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
        want = torch.tensor(hidden, dtype=torch.float64) @ swiglu.down.weight[k]
        torch.testing.assert_close(got[k, b, t], want, rtol=1e-12, atol=1e-12)
    assert [value.shape for value in swiglu.parameters()] == [(2, 6, 5), (2, 6, 5), (2, 5, 6)]  # no biases


EMBEDDED = Sizes(members=2, length=3, depth=1, width=4, heads=2, head_width=2, mlp_width=16, size_in=5, size_out=5)


def test_looks_up_and_maps_and_leaves_the_frozen_vector_alone() -> None:
    embedding = MappedToken(EMBEDDED, frozen=0)
    generator = torch.Generator().manual_seed(0)
    for value in embedding.parameters():
        value.data = torch.randn(value.shape, generator=generator)
    index = torch.tensor([[[0, 1, 4]], [[2, 0, 0]]])  # (K, B, T)
    found = embedding(index)
    for member in range(2):
        rows = embedding.table.weight[member][index[member, 0]]
        expected = rows @ embedding.map.weight[member] + embedding.map.bias[member]
        assert torch.allclose(found[member, 0], expected, atol=1e-6)
    grad = torch.autograd.grad(found.square().sum(), embedding.table.weight)[0]
    assert (grad[:, 0] == 0).all() and (grad[0, 1] != 0).all() and (grad[1, 2] != 0).all() and (grad[0, 2] == 0).all()
