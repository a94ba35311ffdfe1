"""Check the accuracy that a mask leaves: exact sums beside brute force over all sequences, and what reaches which place."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

from rankfall.design import Architecture, Component
from rankfall.nets.network import Shape, build
from rankfall.position.attainable import attainable, find_reads

Weighted = Iterator[tuple[tuple[int, ...], Fraction]]  # sequences with their probabilities
MASKS: list[Any] = [
    "none",
    "causal",
    {"name": "local", "window": 1},
    {"name": "local", "window": 1, "causal": True},
    {"name": "dilated"},
]


def architecture(mask: Any = "none", depth: int = 1, **fields: Any) -> Architecture:
    return Architecture("a", mask=Component.parse(mask), depth=depth, **fields)


def brute_force(sequences: Weighted, answers: Any, reads: Sequence[frozenset[int]]) -> float:
    """Return the accuracy of the best answers by all that a place reads; -1: nothing is asked."""
    weights: dict[Any, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for sequence, weight in sequences:
        for place, answer in enumerate(answers(sequence)):
            if answer != -1:
                weights[place, tuple(sequence[other] for other in sorted(reads[place]))][answer] += weight
    best, total = (sum(map(of, map(dict.values, weights.values())), Fraction()) for of in (max, sum))
    return float(best / total)


def uniform(length: int, symbols: int) -> Weighted:
    for sequence in itertools.product(range(symbols), repeat=length):
        yield sequence, Fraction(1)


def repeated(length: int, symbols: int, common: int) -> Weighted:
    """As `tasks/places.py` draws them: so many tokens, at random places, are one symbol."""
    for where in itertools.combinations(range(length), common):
        for symbol in range(symbols):
            for others in itertools.product(range(symbols), repeat=length - common):
                left = iter(others)
                yield tuple(symbol if place in where else next(left) for place in range(length)), Fraction(1)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_sorting_is_what_brute_force_finds(mask: Any, depth: int) -> None:
    design = architecture(mask, depth)
    for length, symbols in ((5, 3), (4, 5), (3, 2), (1, 4)):
        task = Component("sorting", {"train": 1, "test": 1, "length": length, "symbols": symbols})
        exact = brute_force(uniform(length, symbols), sorted, find_reads(design, length))
        assert attainable(task, design) == (pytest.approx(exact, abs=1e-12), "")


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.6, 1.0])
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_even_tokens_is_what_brute_force_finds(mask: Any, rho: float) -> None:
    length, symbols, common = 5, 3, {0.0: 0, 0.4: 2, 0.6: 3, 1.0: 5}[rho]
    options = {"train": 1, "test": 1, "length": length, "symbols": symbols, "rho": rho, "repeated": None}
    design = architecture(mask)

    def answers(sequence: tuple[int, ...]) -> list[int]:
        even = list(sequence[1::2])
        return even + [symbols] * (length - len(even))

    exact = brute_force(repeated(length, symbols, common), answers, find_reads(design, length))
    assert attainable(Component("even_tokens", options), design) == (pytest.approx(exact, abs=1e-12), "")


def test_the_sorting_of_the_default_run_under_a_causal_mask() -> None:
    task = Component("sorting", {"train": 1000, "test": 200, "length": 8, "symbols": 10})
    assert attainable(task, architecture("causal", 6)) == (pytest.approx(0.6163, abs=5e-5), "")
    assert attainable(task, architecture("none", 6)) == (1.0, "")


@pytest.mark.parametrize("sentinels", ["none", "bos", "cls_sep"])
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_place_reads_what_a_network_answers_to(mask: Any, sentinels: str, depth: int) -> None:
    """The derivatives of a network's outputs by its embedded tokens, at random weights."""
    length, width = 7, 8
    design = Architecture(
        "a", mask=Component.parse(mask), sentinels=Component(sentinels), depth=depth, width=width, heads=2,
        embedding=Component("token"), head=Component("classifier"), mlp=Component("gelu"), mlp_width=8,
    )  # fmt: skip
    network = build(design, Shape("tokens", "classes", length, 4, 4), 1, torch.float64)
    network.initialise([0])
    start = torch.randn(1, 1, length, width, dtype=torch.float64)

    def outputs(x: torch.Tensor) -> torch.Tensor:
        return network.readout(network.run(network.first_state(x))).sum(-1)[0, 0]

    slopes = torch.autograd.functional.jacobian(outputs, start)[:, 0, 0].abs().amax(-1)  # (T, T)
    answered = [frozenset(torch.nonzero(row)[:, 0].tolist()) for row in slopes]
    assert answered == find_reads(design, length)


LEAKING = """
def centred(logits):
    weights = logits.softmax(-1)
    return weights + 0.1 * logits.exp().sum(-2, keepdim=True).clamp(max=1)


def good(logits):
    return logits.softmax(-1)
"""


def test_a_normaliser_of_a_users_own_that_reads_behind_the_mask_has_no_ceiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks had 128% of what their mask leaves attainable."""
    (tmp_path / "lab_leaks.py").write_text(LEAKING)
    monkeypatch.syspath_prepend(tmp_path)
    sorting = Component("sorting", {"train": 1, "test": 1, "length": 4, "symbols": 3})
    good = architecture("causal", normaliser=Component("lab_leaks:good"))
    assert attainable(sorting, good) == attainable(sorting, architecture("causal"))
    best, why = attainable(sorting, architecture("causal", normaliser=Component("lab_leaks:centred")))
    assert best is None and "reads tokens that its mask causal hides" in why


def test_a_norm_over_tokens_reads_all() -> None:
    assert find_reads(architecture("causal", norm=Component("column")), 3) == [frozenset(range(3))] * 3
