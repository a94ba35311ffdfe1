"""Path effectiveness against a path-by-path evaluation written from the definition."""

import threading
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from helpers import by_member, cells, network_of
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.random_streams import stream
from rankfall.rank.paths import measure as _module
from rankfall.rank.paths.measure import SKIP, at_once, draw, path_ends, paths, read_out
from rankfall.tasks.sorting import sorting
from rankfall.train.data import Data

EVERY = np.array(list(product((SKIP, 0, 1), repeat=2)))  # paths of two layers with two heads


def example(**architecture: Any) -> tuple[Network, Data, list[Any]]:
    """Return networks far from initialisation, where every path differs, with their data and cells."""
    chosen = cells(architecture=architecture, grid={"seed": [0, 1]})
    datasets = [sorting(stream(s, "data"), train=20, test=9, length=5, symbols=6) for s in (0, 1)]
    network = network_of(2, 5, 6, noise=0.7, seed=2, **architecture)
    return network, Data.from_datasets(datasets, torch.float64, torch.device("cpu")), chosen


def walk(network: Network, x: Tensor, path: tuple[int, ...], frozen: bool, k: int) -> Tensor:
    """One member, one path, in plain matrix algebra. x: (B, T)"""
    width, heads = 8, 2
    state = network.lift(x.expand(2, *x.shape))[k]
    full = network.states(x.expand(2, *x.shape))

    def norm(y: Tensor) -> Tensor:
        return (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, unbiased=False) + 1e-12).sqrt()

    for layer, head in enumerate(path):
        if head == SKIP:
            continue
        block = network.blocks[layer]
        a, own = block.attention, slice(head * width // heads, (head + 1) * width // heads)
        pre = block.placement == "pre"
        before = norm(state) if pre else state
        source = (block.norm1(full[layer]) if pre else full[layer])[k] if frozen else before
        q = source @ a.query.weight[k][:, own] + a.query.bias[k][:, own]
        key = source @ a.key.weight[k][:, own] + a.key.bias[k][:, own]
        weights = (q @ key.transpose(-1, -2) / (width // heads) ** 0.5).softmax(-1)
        value = before @ a.value.weight[k][:, own] + a.value.bias[k][:, own]
        state = weights @ value @ a.output.weight[k][own] + a.output.bias[k]
        state = state if pre else norm(state)
        if block.mlp is not None:
            seen = norm(state) if pre else state
            inner = torch.nn.functional.gelu(seen @ block.mlp.inner.weight[k] + block.mlp.inner.bias[k])
            state = state + inner @ block.mlp.outer.weight[k] + block.mlp.outer.bias[k]
            state = state if pre else norm(state)
    return state


def ended(network: Network, inputs: Tensor, distinct: np.ndarray, frozen: bool = False) -> Tensor:
    return path_ends(network, network.lift(inputs), distinct, network.states(inputs) if frozen else None)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    "architecture", [{}, {"mlp": "gelu"}, {"norm_placement": "pre"}, {"norm_placement": "pre", "mlp": "gelu"}]
)
def test_every_path_ends_where_it_should(architecture: dict[str, Any], frozen: bool) -> None:
    """All nine paths of two layers and two heads, walked together and one by one."""
    network, data, _ = example(**architecture)
    ends = ended(network, data.test.inputs, EVERY, frozen)
    for k in range(2):
        for u, path in enumerate(EVERY):
            torch.testing.assert_close(ends[k, u], walk(network, data.test.inputs[k], tuple(path), frozen, k))


def test_sets_are_summed_normalised_and_read() -> None:
    network, data, _ = example()
    ends = ended(network, data.test.inputs, EVERY)
    sets = torch.tensor([2.0, 0, 0, 1, 0, 0, 0, 0, 0]).double().expand(2, 1, 9)  # a path drawn twice counts twice
    total = 2 * ends[0, 0] + ends[0, 3]
    centred = total - total.mean(-1, keepdim=True)
    normal = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    expected = (normal @ network.head.map.weight[0] + network.head.map.bias[0]).argmax(-1)
    assert torch.equal(read_out(network, ends, sets)[0, 0], expected)


def test_rows_hold_every_combination_and_the_references() -> None:
    network, data, chosen = example()
    rows = by_member(paths, Context(network, data, chosen), counts=[2, 3], repeats=4)
    points = [r for r in rows if r["kind"] == "path"]
    assert len(points) == 2 * 2 * 3 * 2 * 4  # members, evaluations, lengths, counts, repeats
    assert len({tuple(sorted(r.items())) for r in rows if r["kind"] != "path"}) == 4
    right = (network(data.test.inputs).argmax(-1) == data.test.targets).double().mean((1, 2))
    whole = {r["member"]: r["accuracy"] for r in rows if r["kind"] == "whole"}
    assert whole == pytest.approx({0: float(right[0]), 1: float(right[1])})
    chance = {r["member"]: r["accuracy"] for r in rows if r["kind"] == "chance"}
    assert chance == {0: float(data.chance[0]), 1: float(data.chance[1])}
    # There is one path of length 0, so neither repeats nor numbers of paths can spread.
    assert len({(r["member"], r["accuracy"]) for r in points if r["length"] == 0}) <= 2


def test_draws_are_uniform_over_paths_of_a_length() -> None:
    """12 equally likely paths (3 layers choose 2, times 2 heads squared): counts of 24,000 draws within 5 sigma."""
    drawn = draw(stream(0, "paths"), 2, 3, 2, 24000)
    assert ((drawn != SKIP).sum(1) == 2).all()
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 12
    assert abs(counts - 2000).max() < 5 * (2000 * 11 / 12) ** 0.5


def test_every_seed_draws_its_own_paths() -> None:
    """A deviation over seeds must have the draw in it."""
    assert not np.array_equal(*(draw(stream(seed, "paths"), 1, 6, 2, 20) for seed in (0, 1)))
    network, data, chosen = example()
    first, second = (by_member(paths, Context(network, data, [cell] * 2), counts=[2], repeats=3) for cell in chosen)
    assert first != second


@pytest.mark.parametrize("frozen", [False, True])
def test_states_computed_a_few_at_a_time_are_those_of_all_at_once(
    frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, data, _ = example(mlp="gelu")
    at_once_ = ended(network, data.test.inputs, EVERY, frozen)
    monkeypatch.setattr(_module, "CACHED", 1)
    torch.testing.assert_close(ended(network, data.test.inputs, EVERY, frozen), at_once_, rtol=1e-12, atol=1e-12)


def test_parts_are_computed_side_by_side_on_one_thread_each() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = threading.Barrier(2, timeout=20)  # broken unless two are under way at once

        def part(item: int) -> tuple[int, int]:
            together.wait()
            return item, torch.get_num_threads()

        assert at_once(part, range(4), 8) == [(item, 1) for item in range(4)]
        assert at_once(lambda item: torch.get_num_threads(), range(4), 1) == [2] * 4  # one after another, on both
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
