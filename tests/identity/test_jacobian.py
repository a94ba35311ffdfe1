"""Check norms of Jacobian blocks against differences of the network itself, a linear network's closed form, and each other."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import network_of
from torch import Tensor

from rankfall.identity.attribution.layers import row
from rankfall.identity.jacobian import (
    JACOBIAN,
    SUMMED,
    TIMES_INPUT,
    WITHOUT_OUTLIERS,
    Layers,
    blocks_of,
    constant_sums,
    every_block,
)
from rankfall.identity.shares import ablation
from rankfall.nets.network import Network

TOKENS, WIDTH, MEMBERS, SAMPLES = 5, 8, 2, 2


def network(noise: float = 0.3, **architecture: Any) -> Network:
    """Return networks with weights large enough that attention is not uniform."""
    return network_of(MEMBERS, TOKENS, 7, noise=noise, **{"width": WIDTH} | architecture)


def layers_of(made: Network) -> Layers:
    return lambda x: list(made.layers(x))[1:]


def of_one(made: Network, member: int) -> Layers:
    """One member as a function of one sample's states (T, D)."""
    return lambda x: [state[member, 0] for state in layers_of(made)(x.expand(MEMBERS, 1, TOKENS, WIDTH))]


def states(seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(MEMBERS, SAMPLES, TOKENS, WIDTH, dtype=torch.float64, generator=generator)


def by_differences(made: Network, x: Tensor, step: float = 1e-5) -> Tensor:
    """The whole Jacobian by central differences: (L, K, B, T_j, D, T_i, D)."""
    columns = []
    for token in range(TOKENS):
        for feature in range(WIDTH):
            moved = torch.zeros_like(x)
            moved[..., token, feature] = step
            up, down = (torch.stack(list(layers_of(made)(x + sign * moved))) for sign in (1, -1))
            columns.append((up - down) / (2 * step))
    return torch.stack(columns, -1).unflatten(-1, (TOKENS, WIDTH))


@pytest.mark.parametrize(
    "architecture",
    [
        {"mlp": "gelu"},
        {"mlp": "gelu", "norm_placement": "pre", "mask": "causal", "position": "rope"},
        {"residual": "none", "normaliser": "l2"},
        {"attention": "linear", "mlp": "relu"},
        {"attention": "gau"},
    ],
)
def test_blocks_agree_with_differences(architecture: dict[str, Any]) -> None:
    made, x = network(**architecture), states()
    whole = by_differences(made, x)
    found = every_block(layers_of(made), x)
    assert found[JACOBIAN].shape == (2, MEMBERS, SAMPLES, TOKENS, TOKENS)
    scaled = whole * x[:, :, None, None]
    for name, differences in (
        (JACOBIAN, whole.square().sum((4, 6))),
        (TIMES_INPUT, scaled.square().sum((4, 6))),
        (SUMMED, whole.sum(4).square().sum(-1)),
    ):
        expected = differences.sqrt()
        torch.testing.assert_close(found[name].sqrt(), expected, rtol=1e-6, atol=1e-6 * float(expected.max()))


def test_a_few_tokens_exactly() -> None:
    """Carried back from chosen tokens, the blocks are those carried forward; features that are left out are taken off."""
    made, x = network(mlp="gelu"), states()
    every = every_block(layers_of(made), x)
    tokens = torch.tensor([3, 0])
    apart = [torch.tensor([1, 6]), torch.tensor([2])]
    for outliers in (None, apart):
        found = blocks_of(of_one(made, 1), x[1, 1], tokens, None, np.random.default_rng(0), outliers, memory=1)
        for name in (JACOBIAN, TIMES_INPUT, SUMMED):
            torch.testing.assert_close(found[name][0], every[name][:, 1, 1, tokens], rtol=1e-10, atol=1e-12)
    whole = by_differences(made, x)[:, 1, 1, tokens]  # (L, N, D, T, D)
    for layer, features in enumerate(apart):
        kept = [feature for feature in range(WIDTH) if feature not in features.tolist()]
        expected = whole[layer][:, kept].square().sum((1, 3))
        torch.testing.assert_close(found[WITHOUT_OUTLIERS][0, layer], expected, rtol=1e-6, atol=1e-8)


def test_directions_estimate_without_bias() -> None:
    """The mean over many directions comes as near to the block's square as its spread says; all directions together are exact."""
    made, x = network(mlp="gelu"), states()
    tokens, rng = torch.arange(TOKENS), np.random.default_rng(3)
    exact = every_block(layers_of(made), x)[JACOBIAN][:, 0, 0]
    apart = [torch.tensor([1]), torch.tensor([4])]
    drawn = torch.cat([blocks_of(of_one(made, 0), x[0, 0], tokens, 2, rng, apart)[JACOBIAN] for _ in range(100)])
    error = drawn.std(0) / len(drawn) ** 0.5  # of (200, L, T, T)
    assert float(((drawn.mean(0) - exact) / error).abs().max()) < 4.5
    assert float((error / exact).max()) < 0.2
    full = blocks_of(of_one(made, 0), x[0, 0], tokens, WIDTH, rng)[JACOBIAN].mean(0)
    torch.testing.assert_close(full, exact, rtol=1e-10, atol=1e-12)


def test_a_linear_network() -> None:
    """Uniform attention (queries zero), no norm, no MLP: a layer is X -> X + C X W, so block (j, i) after two layers is
    [i = j] 1 + C_ji (W_1 + W_2) + (C C)_ji W_1 W_2, with C the causal average."""
    made, x = network(norm="none", mask="causal", position="none"), states()
    maps = []
    for block in made.blocks:
        block.attention.query.weight.data.zero_()
        block.attention.query.bias.data.zero_()
        maps.append(block.attention.maps()[0].sum(1))  # (K, D, D), of all heads
    average = torch.ones(TOKENS, TOKENS, dtype=torch.float64).tril()
    average /= average.sum(1, keepdim=True)
    same, twice, unit = torch.eye(TOKENS), average @ average, torch.eye(WIDTH, dtype=torch.float64)
    found = every_block(layers_of(made), x)[JACOBIAN].sqrt()
    for member in range(MEMBERS):
        first, second = (values[member] for values in maps)
        for j in range(TOKENS):
            for i in range(TOKENS):
                one = same[j, i] * unit + average[j, i] * first
                two = same[j, i] * unit + average[j, i] * (first + second) + twice[j, i] * first @ second
                for layer, block in enumerate((one, two)):
                    assert float(found[layer, member, 1, j, i]) == pytest.approx(float(block.norm()), rel=1e-12)


def test_what_a_causal_mask_hides_has_no_effect_on_any_processor() -> None:
    """Batches of one and of all tokens round differently: a difference of units in the last place is no effect."""
    made, x = network(mlp="gelu", mask="causal", depth=6), states()
    for memory in (1, 2**30):
        found = ablation(layers_of(made), x, memory=memory)
        there = torch.ones(TOKENS, TOKENS).tril().bool()
        assert bool((found[..., ~there] == 0).all()) and bool((found[..., there] > 0).all())
    noisy = ablation(lambda y: [y + torch.finfo(y.dtype).eps * y * torch.randn_like(y)], x)
    assert bool((noisy[..., ~torch.eye(TOKENS).bool()] == 0).all())


def test_features_that_sum_to_a_constant_are_recognised() -> None:
    """Behind a plain norm nothing is carried back for the sum, and the blocks are what they were; unequal gains, or tokens that have
    become equal where rank is lost, are no constant."""
    x, tokens, rng = states(), torch.tensor([2, 0]), np.random.default_rng
    plain, gains = network(noise=0.0, mlp="gelu"), network(noise=0.0, mlp="gelu")
    equal = network(noise=0.0, residual="none", normaliser="softmax", depth=6)  # SAN: all rows equal
    for norm in [
        norm for made in (gains, equal) for block in made.blocks for norm in (block.norm1, block.norm2) if norm
    ]:
        norm.gain.data += 0.3 * torch.randn(norm.gain.shape, dtype=torch.float64)
    for made, constant in ((plain, True), (gains, False), (equal, False)):
        layers = of_one(made, 1)
        sums = constant_sums(layers, x[1, 1], layers(x[1, 1]))
        assert sums == [constant] * len(sums)
        few, every = blocks_of(layers, x[1, 1], tokens, None, rng(0)), every_block(layers_of(made), x)
        assert bool((few[SUMMED] == 0).all()) == constant
        for name in (JACOBIAN, SUMMED)[: 1 if constant else 2]:
            torch.testing.assert_close(few[name][0], every[name][:, 1, 1, tokens], rtol=1e-9, atol=1e-20)


def test_quantiles_and_the_deviation_of_means_by_hand() -> None:
    """0 to 100 in steps of one: the quantiles are their own percents; a token without a number is left out."""
    values = torch.arange(101.0, dtype=torch.float64).view(1, -1)
    shares = torch.cat([values, values + torch.nan])
    numbers = row("jacobian", "all", "own share", shares, torch.arange(1, 203).view(2, -1))
    expected = {"low": 5, "lower": 25, "median": 50, "upper": 75, "high": 95, "value": 50}
    assert {name: numbers[name] for name in expected} == pytest.approx(expected)
    assert numbers["deviation"] is None  # of one sample with numbers
    two = row("jacobian", "all", "own share", torch.tensor([[1.0, 3.0], [4.0, 8.0]]), torch.ones(2, 2))
    assert two["value"] == 4 and two["deviation"] == pytest.approx(8**0.5)  # means 2 and 6
