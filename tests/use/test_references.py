"""Guards the predictors without a network: by hand on a small set, by theory on sorting, and their order."""

from typing import Any

import pytest
import torch
from helpers import dataset_of

from rankfall.measure.context import Context
from rankfall.random_streams import stream
from rankfall.tasks._dataset import Dataset
from rankfall.tasks.convex_hull import convex_hull
from rankfall.tasks.memorization import memorization
from rankfall.tasks.sorting import sorting
from rankfall.train.data import Data
from rankfall.use.references.measure import references


def accuracies(dataset: Dataset) -> dict[str, float]:
    data = Data.from_datasets([dataset], torch.float32, torch.device("cpu"))
    return {row["predictor"]: row["accuracy"] for row in references(Context(data=data))}


def dataset(*parts: Any) -> Dataset:
    return dataset_of(*(torch.tensor(part) for part in parts), size_in=9, size_out=3, chance=0.0)


def test_by_hand() -> None:
    train = [[1, 2], [1, 2], [2, 1]], [[0, 1], [0, 1], [2, -1]]
    shares = accuracies(dataset(*train, [[1, 2], [2, 1], [5, 5]], [[0, 1], [2, 0], [1, -1]]))
    # By place 0: answers 0, 0, 2 -> 0; place 1: 1, 1 -> 1. Right: (0, 1), neither of (2, 0), not 1.
    assert shares["position"] == pytest.approx(2 / 5)
    # Symbol 1 -> 0; symbol 2 -> 1 (twice, once 2); symbol 5 never seen -> 0, the smallest of the most frequent of all.
    assert shares["token"] == pytest.approx(3 / 5)
    # (1, 0) -> 0, (2, 1) -> 1, (2, 0) -> 2; (1, 1) asked for nothing and (5, .) never seen -> 0.
    assert shares["token_position"] == pytest.approx(4 / 5)
    assert shares["oracle"] == 1.0  # no two asked tokens of a sample are equal


def test_equal_tokens_of_a_sample_get_one_answer() -> None:
    shares = accuracies(
        dataset([[1, 1, 1, 2]], [[0, 0, 1, 2]], [[1, 1, 1, 2], [1, 1, 3, 3]], [[0, 0, 1, 2], [1, 1, 2, 0]])
    )
    assert shares["oracle"] == pytest.approx((2 + 1 + 2 + 1) / 8)


def test_position_is_the_tasks_chance_and_seeing_more_helps() -> None:
    data = sorting(stream(0, "data"))
    shares = accuracies(data)
    assert shares["position"] == pytest.approx(data.chance)
    assert shares["token_position"] > shares["position"] > shares["token"] > 0.1
    assert shares["token"] < 0.25  # a symbol alone says little about its place's answer


def test_vectors_have_positions_only() -> None:
    data = convex_hull(stream(0, "data"), train=50, test=20)
    assert accuracies(data) == {"position": pytest.approx(data.chance)}


def test_padding_is_never_asked(tmp_path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("sentence1\tsentence2\n" + "".join(f"one {n}\ttwo {n} {n}\n" for n in range(20)))
    data = memorization(stream(0, "data"), text=str(path), padded=True, train=20, test=10, length=30, vocabulary=200)
    shares = accuracies(data)
    asked = (data.test.targets != -1).sum(1)
    assert shares["token_position"] >= shares["token"] - 0.05 and 0.5 < shares["oracle"] < 1.0
    # One answer for both [SEP] and for both numbers is right for at least half of them and all else.
    least = ((asked - 2) / asked).double().mean().item()
    assert shares["oracle"] >= least - 0.05
