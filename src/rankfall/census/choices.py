"""Which choices of a design go with what a model keeps at birth: a linear regression over types, and how sure it is.

The response is log10 of what the layers keep, residual_last / residual_first; a predictor is a choice that was measured. An effect is
what the choice multiplies the kept residual by, all others equal. Types of one folder of the library share code, so intervals are of a
bootstrap that draws whole folders, and so is the share that the regression explains in folders that it was not fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = Mapping[str, Any]
Matrix = NDArray[np.float64]
DRAWS, LOW, HIGH = 1000, 2.5, 97.5
FEWEST = 8  # types on either side of a choice


def stands(place: str) -> Callable[[Row], float]:
    return lambda row: float(place in (row["norm_place"] or ""))


CHOICES: Mapping[str, Callable[[Row], float]] = {
    "causal mask": lambda row: float(row["mask"] == "causal"),
    "tokens mixed without softmax": lambda row: float(row["mixer"] == "mixing without softmax"),
    "rms norm instead of layer norm": lambda row: float(row["norm"] == "rms"),
    "norm before the branch": stands("before"),
    "norm behind the branch": stands("behind"),
    "norm after the addition": stands("after"),
    "norm inside the branch": stands("inside"),
    "positions added to the states": lambda row: float(row["position"] == "in the states"),
    "branches side by side": lambda row: float(bool(row["parallel"])),
    "weights ten times as large": lambda row: math.log10(row["init_std_scaled"]),
    "twice as many layers": lambda row: math.log2(row["layers"]),
}


@dataclass(frozen=True)
class Effect:
    """`types`: on how many types the choice was made; None for a quantity."""

    choice: str
    types: int | None
    effect: float | None  # factor
    low: float | None
    high: float | None
    gain: float | None  # of the share explained, by this choice beside all others
    reason: str = ""


@dataclass(frozen=True)
class Explained:
    effects: list[Effect]
    rows: int
    families: int
    share: float | None  # of the variance, in folders that the fit has not seen


def usable(rows: Sequence[Row]) -> list[Row]:
    """Measured types with skips, whose residual is above rounding and whose choices are all known."""
    needed = ("residual_first", "residual_last", "mask", "mixer", "norm", "norm_place", "position", "init_std_scaled")
    return [
        row
        for row in rows
        if row["skips"]
        and all(row[name] is not None for name in needed)
        and row["residual_first"] > 0
        and row["residual_last"] > (row["floor"] or 0)
        and row["init_std_scaled"] > 0
    ]


def explain(rows: Sequence[Row], draws: int = DRAWS, seed: int = 0) -> Explained:
    """Of one row a type."""
    rows = usable(rows)
    columns = {name: np.array([of(row) for row in rows]) for name, of in CHOICES.items()}
    kept = [name for name, column in columns.items() if varies(column)]
    families = sorted({row["family"] for row in rows})
    if len(rows) <= len(kept) + 1 or len(families) < 3:
        reason = f"{len(rows)} types of {len(families)} families are too few"
        return Explained([absent(name, reason) for name in CHOICES], len(rows), len(families), None)
    y = np.array([math.log10(row["residual_last"] / row["residual_first"]) for row in rows])
    x = np.column_stack([np.ones(len(rows)), *(columns[name] for name in kept)])
    groups = np.array([families.index(row["family"]) for row in rows])
    slopes = fit(x, y)
    ends = np.percentile(bootstrap(x, y, groups, draws, seed), [LOW, HIGH], axis=0)
    whole = out_of_sample(x, y, groups)
    effects = []
    for name, column in columns.items():
        if name not in kept:
            effects.append(absent(name, f"fewer than {FEWEST} types differ in it"))
            continue
        place = kept.index(name) + 1
        gain = whole - out_of_sample(np.delete(x, place, 1), y, groups)
        count = int(column.sum()) if is_choice(column) else None
        factor, low, high = (float(10**value) for value in (slopes[place], ends[0, place], ends[1, place]))
        effects.append(Effect(name, count, factor, low, high, gain))
    return Explained(effects, len(rows), len(families), whole)


def absent(name: str, reason: str) -> Effect:
    return Effect(name, None, None, None, None, None, reason)


def is_choice(column: Matrix) -> bool:
    return set(np.unique(column)) <= {0.0, 1.0}


def varies(column: Matrix) -> bool:
    """Whether enough types are on both sides, or a quantity has two values at all."""
    if is_choice(column):
        return bool(FEWEST <= column.sum() <= len(column) - FEWEST)
    return bool(np.ptp(column) > 0)


def fit(x: Matrix, y: Matrix) -> Matrix:
    """Least squares; the shortest solution where columns depend on each other, as in a draw that lacks a choice."""
    return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0], dtype=np.float64)


def bootstrap(x: Matrix, y: Matrix, groups: NDArray[Any], draws: int, seed: int) -> Matrix:
    """Slopes of samples of whole groups, (draws, columns)."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    found = []
    for _ in range(draws):
        chosen = np.concatenate([members[group] for group in rng.integers(len(members), size=len(members))])
        found.append(fit(x[chosen], y[chosen]))
    return np.array(found)


def out_of_sample(x: Matrix, y: Matrix, groups: NDArray[Any], folds: int = 10) -> float:
    """1 - squared error / variance, where each group is predicted by a fit to the groups of other folds."""
    guess = np.zeros_like(y)
    for fold in range(folds):
        held = groups % folds == fold
        if held.any():
            guess[held] = x[held] @ fit(x[~held], y[~held]) if (~held).any() else 0.0
    return float(1 - ((y - guess) ** 2).sum() / ((y - y.mean()) ** 2).sum())
