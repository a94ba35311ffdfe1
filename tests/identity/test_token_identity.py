"""Check token identifiability of cells: which sentences it takes, and its rates where the answer is known."""

from typing import Any

import pytest
import torch
from helpers import by_member, cells, dataset_of, each_member, network_of
from torch import Tensor

from rankfall.identity.token_identity.measure import distinct_sentences, token_identity, vocabulary
from rankfall.measure.context import Context
from rankfall.train.data import Data

SYMBOLS, LENGTH = 40, 7
FEW = {"sentences": 40, "epochs": 1, "hidden": 4, "places": 2}


def words(seed: int, count: int) -> Tensor:
    return torch.randint(SYMBOLS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))


def context(**architecture: Any) -> Context:
    options = {"width": 16} | architecture
    network = network_of(2, LENGTH, SYMBOLS, torch.float32, **options)
    datasets = [
        dataset_of(words(seed, 60), words(seed, 60), words(9 - seed, 20), words(seed, 20), size_in=SYMBOLS, size_out=2)
        for seed in (0, 1)
    ]
    data = Data.from_datasets(datasets, torch.float32, torch.device("cpu"))
    return Context(network, data, cells(architecture=options, grid={"seed": [0, 1]}))


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
    sentences = distinct_sentences(data, 40)
    assert len(sentences) == len({tuple(sentence.tolist()) for sentence in sentences}) == 40
    assert torch.equal(sentences[-20:], data.test.inputs[0].flip(0))
    assert len(distinct_sentences(data, 1000)) == 80


@pytest.mark.parametrize("sentinels", ["none", "bos"])
def test_all_words_are_what_the_network_makes_of_them(sentinels: str) -> None:
    for member in each_member(context(sentinels=sentinels)):
        inputs, network = member.data.test.inputs, member.network
        state = network.lift(inputs)
        state = state if network.sentinels is None else network.sentinels.strip(state)
        for place, entering in zip((1, 5), vocabulary(network, SYMBOLS, [1, 5]), strict=True):
            torch.testing.assert_close(entering[inputs[0, :, place]], state[0, :, place])
