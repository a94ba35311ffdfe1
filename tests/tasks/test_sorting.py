"""The sorting task: its answers, its seeds, and what a guess is worth."""

import pytest
import torch
from scipy.stats import binom

from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting


def test_targets_are_the_sorted_inputs() -> None:
    data = sorting(stream(0, "data"), train=50, test=20)
    for inputs, targets in ((data.train.inputs, data.train.targets), (data.test.inputs, data.test.targets)):
        assert [sorted(row) for row in inputs.tolist()] == targets.tolist()
        assert inputs.min() >= 0
        assert inputs.max() < 10


def test_chance_is_the_best_guess_by_position() -> None:
    """P(i-th smallest of 8 uniform digits = c) is a difference of binomial tails; guessing its mode is right 0.339 of the time."""

    def at_most(i: int, c: int) -> float:  # i-th smallest <= c: at least i of 8 are
        return float(binom.sf(i - 1, 8, (c + 1) / 10))

    exact = sum(max(at_most(i, c) - (at_most(i, c - 1) if c else 0.0) for c in range(10)) for i in range(1, 9)) / 8
    assert exact == pytest.approx(0.339, abs=0.001)
    data = sorting(stream(1, "data"), train=40000, test=40000)
    # 320,000 guesses, those of a sequence dependent: a deviation of 0.005 is far beyond noise.
    assert data.chance == pytest.approx(exact, abs=0.005)


def test_a_seed_names_its_data() -> None:
    first, again, other = (sorting(stream(seed, "data"), train=9, test=9) for seed in (3, 3, 4))
    for name in ("train", "test"):
        assert torch.equal(first.splits[name].inputs, again.splits[name].inputs)
    assert not torch.equal(first.train.inputs, other.train.inputs)
    assert not torch.equal(first.train.inputs, first.test.inputs)
