"""Check the experiments of claims of 2025 and 2026, each by a second way."""

import itertools
import math

import pandas as pd
import pytest
import torch

from studies.claims.draws import draw
from studies.claims.exact_maps_learn_faster.experiment import by_orthogonal_blocks
from studies.claims.homogeneity_trap.experiment import correlation
from studies.claims.householder_paths_track_states.experiment import bits
from studies.claims.loss_falls_as_one_over_depth.experiment import states
from studies.claims.loss_falls_as_one_over_depth.rule import power_above_floor
from studies.claims.polar_positions_separate.experiment import scores
from studies.claims.second_half_contributes_less.experiment import contributions
from studies.claims.sinkhorn_gaps_accumulate.experiment import sum_permutations
from studies.claims.sinks_collect_gradients.experiment import First, measure_first, through_norm
from studies.claims.stream_products.maps import sinkhorn
from studies.claims.trained import model
from studies.claims.triggers_need_a_sink.experiment import texts
from studies.claims.untrained import make


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_maps_of_orthogonal_blocks_are_doubly_stochastic() -> None:
    free = drawn(3, 8, 8)
    maps = by_orthogonal_blocks(free, 2)
    for one, found in zip(free, maps, strict=True):
        unit = torch.eye(8).double()
        skew = one - one.T
        q = (unit - skew) @ torch.linalg.inv(unit + skew)
        want = [[float(q[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].square().sum()) / 2 for j in range(4)] for i in range(4)]
        torch.testing.assert_close(found, torch.tensor(want, dtype=torch.float64))
    for one in (maps, sinkhorn(drawn(3, 4, 4), 20), sum_permutations(0, 0, 4)[None]):
        assert (one > 0).all()
        torch.testing.assert_close(one.sum(-1), torch.ones_like(one[..., 0]))
        torch.testing.assert_close(one.sum(-2), torch.ones_like(one[..., 0]), rtol=1e-5, atol=1e-5)


def test_triggers_are_answered_by_the_mean_of_what_is_before_them() -> None:
    inputs, answers, places = texts(3, 1, 20, 9, 4)
    for text, answer, place in zip(inputs, answers, places.tolist(), strict=True):
        assert [bool(token[5]) for token in text] == [t == place for t in range(9)]
        assert not text[0, :4].any() and not text[place, :4].any() and place >= 4
        mean = sum(text[t, :4] for t in range(1, place)) / (place - 1)
        torch.testing.assert_close(answer[place], mean)
        assert not answer[[t for t in range(9) if t != place]].any()
        assert [float(token[6]) for token in text[1:]] == pytest.approx([1 / t for t in range(1, 9)])


def test_parity_is_that_of_all_bits_so_far() -> None:
    inputs, targets = bits(0, 0, 10, 12)
    for text, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        assert text[0] == 2 and wanted[0] == -1
        assert wanted[1:] == [sum(text[1 : t + 1]) % 2 for t in range(1, 12)]


def test_scores_of_polar_and_rotary_parts() -> None:
    q, k = drawn(3, 4), drawn(3, 4).flip(0)
    polar = scores(make([0], 7, position={"name": "polar", "spread": 1.8}, width=4, heads=1).position, q, k, 7)
    angle = make([0], 7, position={"name": "polar", "spread": 1.8}, width=4, heads=1).position.angle[0, 0, 0, 0]
    rope = scores(make([0], 7, position="rope", width=4, heads=1).position, q, k, 7)
    for content, j, part in itertools.product(range(3), range(7), range(4)):
        size = math.log1p(math.exp(q[content, part])) * math.log1p(math.exp(k[content, part]))
        turn = (3 - j) * 10000.0 ** (-part / 4) - float(angle[part])
        assert float(polar[content, j, part]) == pytest.approx(size * math.cos(turn))
        if part < 2:
            a, b = (complex(one[content, part], one[content, part + 2]) for one in (q, k))
            turned = a * b.conjugate() * complex(math.cos(t := (3 - j) * 100.0**-part), math.sin(t))
            assert float(rope[content, j, part]) == pytest.approx(turned.real)


def test_gradients_of_the_first_token_are_difference_quotients() -> None:
    parts = {"norm": "rms", "norm_placement": "pre", "residual": "add", "mlp": "gelu", "mask": "causal"}
    network = make([0], 5, width=8, heads=2, **parts)
    network.blocks[0].attention.position = First(2.0)
    x, function = draw([0], 1, 5, 8, name="x"), draw([0], 1, 5, 8, name="function")
    block, step = network.blocks[0], 1e-5

    def loss(read: torch.Tensor) -> float:
        y = x + block.attention(read)
        return float(((y + block.mlp(block.norm2(y))) * function).sum())

    def gradient(of: object, at: torch.Tensor, token: int) -> float:
        moves = [torch.zeros_like(at) for _ in range(8)]
        for channel, move in enumerate(moves):
            move[0, 0, token, channel] = step
        return math.sqrt(sum(((of(at + move) - of(at - move)) / (2 * step)) ** 2 for move in moves))  # type: ignore[operator]

    read = block.norm1(x)
    sizes = [gradient(loss, read, token) for token in range(5)]
    weight, ratio = measure_first(network, x, function)
    assert float(ratio) == pytest.approx(math.log10(sizes[0] / (sum(sizes[1:]) / 4)), abs=1e-5)
    assert float(weight) == pytest.approx(float(block.attention.weights(read)[0, 0, :, 1:, 0].mean()))
    larger = x.clone()
    larger[:, :, 0] *= 10
    through = gradient(lambda state: float((block.attention(block.norm1(state)) * function).sum()), larger, 0)
    assert float(through_norm(network, x, function, 10)) == pytest.approx(math.log10(through), abs=1e-5)


def test_layers_of_the_toy_are_its_formula() -> None:
    first, second, x = drawn(2, 3, 4, 5), drawn(2, 3, 5, 4).flip(0), drawn(2, 6, 4)
    found = states((first, second), x)
    for k, b in ((0, 0), (1, 5)):
        state = x[k, b]
        for layer in range(3):
            unit = state / (state.square().mean() + 1e-6).sqrt()
            inner = torch.stack([max(unit @ first[k, layer, :, m], torch.tensor(0.0)) ** 2 for m in range(5)])
            state = state + inner @ second[k, layer]
            torch.testing.assert_close(found[layer + 1][k, b], state)


def test_contributions_and_effects_are_those_of_networks_run_by_hand() -> None:
    network = model(0, 6, 9, mask="causal", depth=3, width=8, heads=2, init={"name": "normal", "deviation": 0.5})
    inputs = torch.randint(9, (2, 6), generator=torch.Generator().manual_seed(0))
    rows = {(one["quantity"][:4], one["x"]): one["value"] for one in contributions(network, inputs, "trained", 0)}
    with torch.no_grad():
        x0 = network.lift(inputs[None])
        one, two, three = network.blocks
        x1 = one(x0)
        x2 = two(x1)
        x3 = three(x2)
        share = ((x2 - x1).norm(dim=-1) / x1.norm(dim=-1)).mean()
        without = three(x1) - x1  # the second layer left out
        effect = ((without - (x3 - x2)).norm(dim=-1) / (x3 - x2).norm(dim=-1)).mean()
    assert rows["size", 2.0] == pytest.approx(float(share)) and rows["rela", 2.0] == pytest.approx(float(effect))
    assert ("rela", 3.0) not in rows


def test_correlation_leaves_the_diagonal_out() -> None:
    a, b = drawn(4, 4), drawn(4, 4).flip(0)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    x, y = ([float(one[i, j]) for i, j in pairs] for one in (a, b))
    mx, my = sum(x) / 12, sum(y) / 12
    size = math.sqrt(sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y))
    assert correlation(a, b) == pytest.approx(sum((p - mx) * (q - my) for p, q in zip(x, y, strict=True)) / size)


@pytest.mark.parametrize(("floor", "power"), [(0.05, 1.0), (0.0, 0.5), (0.2, 2.0)])
def test_the_power_above_a_floor_is_found_again(floor: float, power: float) -> None:
    rows = pd.DataFrame({"x": [4.0, 6, 8, 12, 16]})
    assert power_above_floor(rows.assign(value=floor + 0.3 * rows.x**-power)) == pytest.approx(power, abs=0.03)
