"""Check tokens of which a share is the same, the two tasks about them, and what a guess is worth."""

from fractions import Fraction
from math import factorial, floor

import numpy as np
import pytest
import torch
from torch import nn

from rankfall.position.rho import most_frequent
from rankfall.random_streams import stream
from rankfall.repeats import count_common, count_maxima
from rankfall.tasks._dataset import draw
from rankfall.tasks.even_tokens import EvenTokens, attainable
from rankfall.tasks.places import Places, sequences
from rankfall.train.data import Data
from rankfall.train.loop import count_of
from rankfall.train.objectives._base import Samples
from rankfall.train.objectives.classes import classes

RHOS = (0.0, 0.1, 0.25, 0.5, 0.9, 0.97, 1.0)


def test_answers_at_six_places_by_hand() -> None:
    tokens = torch.tensor([[3, 1, 4, 1, 5, 2]])
    even = EvenTokens(length=6, symbols=6)
    assert even.answers(tokens).tolist() == [[1, 1, 2, 6, 6, 6]]
    assert EvenTokens(length=5, symbols=6).answers(tokens[:, :5]).tolist() == [[1, 1, 6, 6, 6]]
    made = draw(Places(length=6, train=4, test=3), 0)
    assert made.test.targets.tolist() == [[0, 1, 2, 3, 4, 5]] * 3  # the first place is asked as well
    assert (made.size_in, made.size_out, made.constant, made.chance) == (10, 6, None, 1 / 6)
    made = draw(EvenTokens(length=5, symbols=6), 0)
    assert (made.size_in, made.size_out, made.constant, made.chance) == (6, 7, 6, 0.6)


@pytest.mark.parametrize("rho", RHOS)
def test_a_share_of_exactly_rho_is_common(rho: float) -> None:
    """Of 100,000 symbols tokens that are drawn by themselves hardly ever agree."""
    tokens = sequences(stream(0, "data"), 40, 20, 100_000, rho)
    most = torch.stack([row.bincount().max() for row in tokens])
    assert count_common(20, rho) == floor(20 * rho + 0.5)
    assert (most == max(1, count_common(20, rho))).all()


def test_the_extremes_are_exact() -> None:
    """rho = 0 is what the generator draws, rho = 1 is identical tokens, and with 1/(2n) less one token is free."""
    drawn = torch.from_numpy(stream(7, "data").integers(10, size=(50, 12)))
    assert torch.equal(sequences(stream(7, "data"), 50, 12, 10, 0.0), drawn)
    same = sequences(stream(7, "data"), 50, 12, 10, 1.0)
    assert (same == same[:, :1]).all() and same[:, 0].bincount(minlength=10).min() > 0
    assert count_common(12, 1.0) == 12 and count_common(12, 0.95) == 11
    almost = sequences(stream(7, "data"), 50, 12, 10, 0.95)
    assert ((almost != same).sum(1) <= 1).all() and (almost != same).any()


def test_common_places_are_exchangeable() -> None:
    """Each place is as often common as any other; a chi-squared sum over 8 places of 4,000 sequences."""
    same = sequences(stream(1, "data"), 4000, 8, 10, 1.0)
    half = sequences(stream(1, "data"), 4000, 8, 10, 0.5)
    share = (half == same).double().mean(0)  # half are common, and of the others a tenth are so by chance
    assert float(((share - 0.55).square() / (0.55 * 0.45 / 4000)).sum()) < 26.1  # 0.001 of the law with 8 degrees


@pytest.mark.parametrize("task", [Places, EvenTokens])
def test_repeated_sequences_are_all_that_is_trained_on(task: type) -> None:
    made = task(length=16, train=25, test=5, repeated=4)
    assert made.batch is None
    drawn = draw(made, 0)
    different, times = drawn.train.inputs.unique(dim=0, return_counts=True)
    assert len(different) == 4 and sorted(times.tolist()) == [6, 6, 6, 7]
    assert not (drawn.test.inputs.unsqueeze(1) == different).all(-1).any()  # the test set is fresh
    data = Data.from_datasets([drawn], torch.float32, torch.device("cpu"))
    shown = torch.cat([batch.inputs for batch in data.epoch([0], 3, 10, True)], 1)[0]
    assert torch.equal(shown.unique(dim=0), different) and len(shown) == 25
    assert not torch.equal(draw(made, 1).train.inputs, drawn.train.inputs)


def test_chance_is_what_the_best_constant_answer_gets() -> None:
    for rho in RHOS:
        for made in (Places(length=7, symbols=3, rho=rho), EvenTokens(length=7, symbols=3, rho=rho)):
            drawn = draw(made, 0)
            share = drawn.test.targets.flatten().bincount().max() / drawn.test.targets.numel()
            assert float(share) == pytest.approx(drawn.chance)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("length", "symbols"), [(12, 10), (9, 2)])
def test_share_of_the_most_frequent_symbol_against_simulation(rho: float, length: int, symbols: int) -> None:
    drawn = sequences(stream(5, "data"), 20_000, length, symbols, rho)
    shares = nn.functional.one_hot(drawn, symbols).sum(1).amax(1).double() / length
    error = float(shares.std() / 20_000**0.5)
    assert most_frequent(length, symbols, rho) == pytest.approx(float(shares.mean()), abs=4 * error + 1e-12)


def test_the_two_halves_add_up() -> None:
    """Accuracy is the mean of both, weighted by how many are asked, whatever the answers."""
    made = EvenTokens(length=7, symbols=4)
    inputs, targets = made.batch(stream(0, "batch", 0), 60)
    table = torch.from_numpy(np.random.Generator(np.random.PCG64(0)).normal(size=(4, 5)))
    batch = Samples(inputs.expand(2, -1, -1), targets.expand(2, -1, -1), [0, 1], ("test", 0), 4, 0, 4)
    graded = classes(table.__getitem__, batch)
    sums = {"asked": graded.asked, **graded.sums, **{f"{name}.asked": n for name, n in graded.asked_of.items()}}
    assert (graded.sums["accuracy"] == graded.sums["accuracy_informative"] + graded.sums["accuracy_constant"]).all()
    assert sums[count_of("accuracy_informative", sums)].tolist() == [60 * 3] * 2
    assert sums[count_of("accuracy_constant", sums)].tolist() == [60 * 4] * 2
    assert sums[count_of("accuracy", sums)].tolist() == [60 * 7] * 2
    chosen = table.argmax(-1)[inputs]
    assert graded.sums["accuracy_constant"].tolist() == [int((chosen[:, 3:] == 4).sum())] * 2
    assert graded.sums["accuracy_informative"].tolist() == [int((chosen[:, :3] == targets[:, :3]).sum())] * 2


@pytest.mark.parametrize(("length", "symbols", "common"), [(16, 10, 0), (12, 3, 5), (6, 1, 2), (5, 4, 5)])
def test_counts_of_the_most_frequent_symbol_have_all_digits(length: int, symbols: int, common: int) -> None:
    """Against exact fractions, also where they are far below the rounding of one."""
    drawn, at_most = length - common, []
    for most in range(length + 1):
        ways = [Fraction(int(n <= most - common), factorial(n)) for n in range(drawn + 1)]  # of the common symbol
        for _ in range(symbols - 1):
            ways = [sum(ways[n - k] / factorial(k) for k in range(min(n, most) + 1)) for n in range(drawn + 1)]
        at_most.append(ways[drawn] * factorial(drawn) / symbols**drawn)
    exact = [float(high - low) for low, high in zip([Fraction(0), *at_most], at_most)]
    assert count_maxima(length, symbols, common) == pytest.approx(exact, rel=1e-12, abs=0)


def test_weights_of_rare_counts_lose_no_digits_of_the_attainable_accuracy() -> None:
    """Behind a causal mask; the value is that of exact fractions."""
    reads = lambda length: [frozenset(range(place + 1)) for place in range(length)]  # noqa: E731
    assert attainable(reads, length=32, symbols=10, rho=0.5) == pytest.approx(0.7430030686059889, rel=1e-12)
