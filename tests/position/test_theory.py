"""Check theory on equal tokens: known cases, and an independent count by attention written out in loops of numpy."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rankfall.design import Architecture, Component
from rankfall.position.theory import Key, Sight, decide, verdict

N, LOOPED, WIDTH, HEAD = 32, 16, 6, 4
BASE = Architecture(name="probed", position=Component("none"), depth=2, heads=2, width=8)


def asked(normaliser: str, position: str, mask: str, sentinels: str, depth: int = 2) -> Architecture:
    parts = {"normaliser": normaliser, "position": position, "sentinels": sentinels}
    local = {
        "dilated": Component("dilated", {"window": 2}),
        "local": Component("local", {"window": 2}),
        "local causal": Component("local", {"window": 2, "causal": True}),
    }
    named = {kind: Component(name) for kind, name in parts.items()}
    return replace(BASE, depth=depth, mask=local.get(mask, Component(mask)), **named)


@pytest.mark.parametrize(
    ("design", "rows", "argument"),
    [
        (asked("softmax", "none", "none", "none"), 1, "row sums"),
        (asked("softmax", "toeplitz", "causal", "none"), 1, "row sums"),
        (asked("softmax", "rope", "local", "none"), 1, "row sums"),
        (asked("softmax", "none", "none", "bos"), 1, "exchange"),
        (asked("exp", "none", "none", "none"), 1, "exchange"),
        (asked("softmax", "learned", "none", "none"), N, "states"),
        (asked("softmax", "rope", "none", "bos"), N, "sentinel"),
        (asked("softmax", "none", "causal", "bos"), N, "sentinel"),
        (asked("l2", "toeplitz", "none", "none"), N, "free sums"),
        (asked("l2", "none", "causal", "none"), N, "free sums"),
        (asked("l2", "symmetric", "none", "none"), N // 2, "reflection"),
        (asked("l2", "symmetric", "none", "bos"), N, "sentinel"),
        (asked("urpe", "none", "none", "none"), N, "free sums"),
        (asked("softmax", "alibi", "none", "none"), 1, "row sums"),
        (asked("zero_sum", "t5", "none", "none"), 1, "row sums"),
        (asked("relu2_sum", "shaw_keys", "causal", "none"), 1, "row sums"),
        (asked("softmax", "shaw", "none", "none"), N, "values"),
        (asked("softmax", "alibi", "none", "cls_sep"), N, "sentinel"),
        (asked("l2", "alibi", "none", "none"), N // 2, "reflection"),
    ],
    ids=lambda value: "" if isinstance(value, int) else "-".join(part_names(value)),
)
def test_cases_that_can_be_worked_out_by_hand(design: Architecture, rows: int, argument: str) -> None:
    found = decide(design, N)
    assert (found.rows, found.argument) == (rows, argument)


def part_names(value: object) -> list[str]:
    if not isinstance(value, Architecture):
        return [str(value)]
    return [str(part) for part in (value.normaliser, value.position, value.mask, value.sentinels)]


@pytest.mark.parametrize("depth", [1, 2, 3, 20])
def test_a_local_mask_carries_the_ends_its_window_a_layer(depth: int) -> None:
    """Seen from each end 2 places more are told apart by every layer; all of the inside is one row more."""
    mirrored = decide(asked("exp", "none", "local", "none", depth), N)
    assert mirrored.rows == min(2 * depth + 1, N // 2)
    both_ends = decide(asked("exp", "toeplitz", "local", "none", depth), N)
    assert both_ends.rows == min(4 * depth + 1, N)
    from_sentinel = decide(asked("softmax", "none", "local", "bos", depth), N)
    assert from_sentinel.rows == min(2 * depth + 1, N)
    assert mirrored.argument == ("reach" if depth < 20 else "reflection")


def decided(visible: list[str], tokens: list[int], depth: int = 3, fixed: bool = False) -> tuple[int | None, str]:
    """Of a mask by its rows, where `x` is seen; what are no tokens are sentinels, and nothing but the mask depends on places."""
    allowed = np.array([[seen == "x" for seen in row] for row in visible])
    start = np.array([0 if place in tokens else 1 + place for place in range(len(visible))])
    nothing = np.zeros(allowed.shape, dtype=np.int64)
    found = verdict(Key(Sight(start, allowed, nothing, nothing, fixed), np.array(tokens), depth))
    return found.rows, found.argument


@pytest.mark.parametrize(
    ("visible", "tokens", "rows", "argument"),
    [
        # In a ring all have equal neighbours, and not all are neighbours.
        (["xx.x", "xxx.", ".xxx", "x.xx"], [0, 1, 2, 3], 1, "surroundings"),
        (["x..", ".xx", ".xx"], [0, 1, 2], 2, "surroundings"),  # half of three places, but not the mirrored ones
        (["x.x", ".x.", "x.x"], [0, 1, 2], 2, "reflection"),
        (
            ["xx...", "xx...", "..x..", "...xx", "...xx"],
            [0, 1, 2, 3, 4],
            2,
            "surroundings",
        ),  # mirrored, fewer than half
        (["xxx", "xxx", "xxx"], [0, 1], 1, "exchange"),
        (["xx.", "xxx", "xxx"], [0, 1], 2, "sentinel"),
    ],
)
def test_masks_that_no_component_has(visible: list[str], tokens: list[int], rows: int, argument: str) -> None:
    assert decided(visible, tokens) == (rows, argument)


# Attention again, written out: one head, no biases, X <- X + A X W.
Weights = Callable[[list[float]], list[float]]
NORMALISERS: dict[str, Weights] = {
    "softmax": lambda b: [math.exp(x) / sum(map(math.exp, b)) for x in b],
    "exp": lambda b: [math.exp(x) for x in b],
    "l2": lambda b: [math.exp(x) / math.sqrt(sum(math.exp(2 * y) for y in b)) for x in b],
    "softmax_off_by_one": lambda b: [math.exp(x) / (1 + sum(map(math.exp, b))) for x in b],
}
MASKS: dict[str, Callable[[int, int], bool]] = {
    "none": lambda i, j: True,
    "causal": lambda i, j: j <= i,
    "local": lambda i, j: abs(i - j) <= 2,
    "local causal": lambda i, j: 0 <= i - j <= 2,
    "dilated": lambda i, j: abs(i - j) in (0, 2, 4),
}


def rows_by_loops(normaliser: str, position: str, mask: str, sentinels: str, seed: int) -> np.ndarray:
    """Return the last rows of two layers, of LOOPED tokens."""
    rng = np.random.default_rng(seed)
    before, after_it = {"none": (0, 0), "bos": (1, 0), "cls_sep": (1, 1)}[sentinels]
    total = before + LOOPED + after_it
    token = rng.normal(size=WIDTH)
    x = [token if before <= i < before + LOOPED else rng.normal(size=WIDTH) for i in range(total)]
    if position == "learned":
        x = [row + rng.normal(size=WIDTH) for row in x]
    bias, added = rng.normal(size=2 * total), rng.normal(size=(2 * total, WIDTH))
    for _ in range(2):
        query, key = (rng.normal(size=(WIDTH, HEAD)) / 3 for _ in range(2))
        value = rng.normal(size=(WIDTH, WIDTH)) / 3
        after = []
        for i in range(total):
            seen, scores = [], []
            for j in range(total):
                if not MASKS[mask](i, j):
                    continue
                q, k = x[i] @ query, x[j] @ key
                if position == "rope":
                    q, k = turned(q, i), turned(k, j)
                score = float(q @ k) / math.sqrt(HEAD)
                score += {"toeplitz": bias[i - j + total], "symmetric": bias[abs(i - j)]}.get(position, 0.0)
                seen.append(x[j] @ value + (added[i - j + total] if position == "shaw" else 0.0))
                scores.append(score)
            after.append(x[i] + sum(a * v for a, v in zip(NORMALISERS[normaliser](scores), seen)))
        x = [row / np.linalg.norm(row) for row in after]
    return np.array(x[before : before + LOOPED])


def turned(vector: np.ndarray, place: int) -> np.ndarray:
    """Two planes, by one and by a tenth of a radian a place."""
    c, s = np.cos([place, 0.1 * place]), np.sin([place, 0.1 * place])
    a, b = vector[:2], vector[2:]
    return np.concatenate([a * c - b * s, a * s + b * c])


def number_of_distinct(rows: np.ndarray) -> int:
    kept: list[np.ndarray] = []
    for row in rows:
        if all(np.abs(row - other).max() > 1e-10 for other in kept):
            kept.append(row)
    return len(kept)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("mask", MASKS)
def test_theory_counts_what_loops_count(normaliser: str, mask: str) -> None:
    for seed, (position, sentinels) in enumerate(
        itertools.product(("none", "learned", "toeplitz", "symmetric", "rope", "shaw"), ("none", "bos", "cls_sep"))
    ):
        counted = number_of_distinct(rows_by_loops(normaliser, position, mask, sentinels, seed))
        assert decide(asked(normaliser, position, mask, sentinels), LOOPED).rows == counted, (position, sentinels)
