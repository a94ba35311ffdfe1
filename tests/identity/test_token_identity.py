"""The measure of token identifiability on cells: which sentences it takes, and what it finds where the answer is known."""

from typing import Any

import pytest
import torch
from helpers import by_member, cells, dataset_of, each_member
from torch import Tensor

from rankfall.identity.token_identity.measure import distinct_sentences, token_identity, vocabulary
from rankfall.measure.context import Context
from rankfall.nets.network import Shape, build
from rankfall.train.data import Data

SYMBOLS, LENGTH = 40, 7
FEW = {"sentences": 40, "epochs": 1, "hidden": 4, "places": 2}


def words(seed: int, count: int) -> Tensor:
    return torch.randint(SYMBOLS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))


def context(seeds: range = range(2), **architecture: Any) -> Context:
    options = {"depth": 2, "heads": 2, "width": 16} | architecture
    made = cells(architecture=options, grid={"seed": f"{seeds[0]}..{seeds[-1]}"})
    network = build(made[0].architecture, Shape("tokens", "classes", LENGTH, SYMBOLS, SYMBOLS), len(seeds))
    network.initialise(list(seeds))
    datasets = [
        dataset_of(words(seed, 60), words(seed, 60), words(9 - seed, 20), words(seed, 20), size_in=SYMBOLS, size_out=2)
        for seed in seeds
    ]
    return Context(
        network.requires_grad_(False), Data.from_datasets(datasets, torch.float32, torch.device("cpu")), made
    )


def rate(rows: list[dict[str, Any]], **labels: Any) -> list[float]:
    return [row["rate"] for row in rows if all(row[name] == value for name, value in labels.items())]


@pytest.mark.parametrize("sentinels", ["none", "bos"])
def test_skips_keep_identity_and_without_them_it_dies_with_rank(sentinels: str) -> None:
    """At initialisation. Without skips six layers leave equal states, of which a guess is right for one token of a sentence."""
    skip = by_member(token_identity, context(residual="add", sentinels=sentinels), **FEW)
    for labels in ({"candidates": "vocabulary", "distance": "cosine"}, {"candidates": "distinct", "distance": "l2"}):
        assert rate(skip, layer=0, map="naive", **labels) == [1.0, 1.0]
    labels = {"candidates": "sentence", "distance": "cosine"}
    bare = by_member(token_identity, context(depth=6, residual="none", sentinels=sentinels), **FEW)
    for name in ("linear", "mlp"):
        assert min(rate(skip, layer=2, map=name, trained_layer=2, **labels)) > 0.98
        assert rate(bare, layer=6, map=name, trained_layer=6, **labels) == pytest.approx([1 / LENGTH] * 4, abs=0.02)


def test_what_is_tested_is_from_the_test_split_and_known_nowhere_else() -> None:
    data = context().data
    found = distinct_sentences(data, 40)
    assert len(found) == 40
    assert len({tuple(one.tolist()) for one in found}) == 40
    assert torch.equal(found[-20:], data.test.inputs[0].flip(0))
    assert len(distinct_sentences(data, 1000)) == 80


@pytest.mark.parametrize("sentinels", ["none", "bos"])
def test_all_words_are_what_the_network_makes_of_them(sentinels: str) -> None:
    it = context(sentinels=sentinels)
    for one in each_member(it):
        inputs, every = one.data.test.inputs, vocabulary(one.network, SYMBOLS, [1, 5])
        state = one.network.lift(inputs)
        state = state if one.network.sentinels is None else one.network.sentinels.strip(state)
        for place, found in zip((1, 5), every, strict=True):
            torch.testing.assert_close(found[inputs[0, :, place]], state[0, :, place])
