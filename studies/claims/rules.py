"""Join the answers of comparisons to the conditions of a verdict, and fit lines to the evidence.

An answer is True, False, or None where an interval lies on both sides of its threshold.
"""

from collections.abc import Iterable
from typing import TypedDict

import numpy as np

from rankfall import Band, DataFrame, band, evidence_rows
from studies.claims.parts import slope


class Conditions(TypedDict, total=False):
    """The conditions of a verdict, as passed to `judge`, which takes the first that is true."""

    undecided: bool
    holds: bool
    in_part: bool
    contradicted: bool


def by_parts(parts: Iterable[bool | None]) -> Conditions:
    """Return the conditions of a statement that holds if all its parts do, in part if some do and some do not, and is contradicted if none
    does. A part without an answer leaves it undecided, unless others differ."""
    answers = set(parts)
    return {"holds": answers == {True}, "in_part": {True, False} <= answers, "contradicted": answers == {False}}


def by_known_parts(parts: Iterable[bool | None]) -> Conditions:
    """Return the conditions of a statement that holds if all its parts do, in part if some do, and is undecided if one has no answer."""
    answers = set(parts)
    return {"undecided": None in answers, "holds": answers == {True}, "in_part": True in answers, "contradicted": True}


def by_need(needed: bool | None, more: bool | None) -> Conditions:
    """Return the conditions of a statement that is contradicted without its first part, and holds in part without its second."""
    unknown = None in (needed, more)
    return {"contradicted": needed is False, "undecided": unknown, "holds": more is True, "in_part": True}


def true_of_all(answers: Iterable[bool | None]) -> bool | None:
    """Return False if one answer is, else None if one is missing."""
    answers = set(answers)
    return False if False in answers else (None if None in answers else True)


def true_of_any(answers: Iterable[bool | None]) -> bool | None:
    """Return True if one answer is, else None if one is missing."""
    answers = set(answers)
    return True if True in answers else (None if None in answers else False)


def lies_between(interval: Band, low: float, high: float) -> bool | None:
    """Return whether the whole interval lies between two thresholds, None where it reaches across one of them."""
    if low < interval.low and interval.high < high:
        return True
    return False if interval.high < low or interval.low > high else None


def slopes(rows: DataFrame, log: bool = False) -> list[float]:
    """Return the slope of value over x for each seed; with `log`, the slope of their logarithms."""
    fitted = []
    for _, group in rows[rows.value.notna()].groupby("seed"):
        x, y = group.x.astype(float), group.value.astype(float)
        fitted.append(slope(np.log(x), np.log(y)) if log else slope(x, y))
    return fitted


def difference(rows: DataFrame, quantity: str, first: str, second: str, x: float) -> Band:
    """Return the value of the first line at x less that of the second, seed by seed, as a mean with its interval."""
    values, others = (evidence_rows(rows, quantity, line, x).value.to_numpy() for line in (first, second))
    return band(values - others)


def first_crossing(rows: DataFrame, level: float) -> float:
    """Return the x at which the values of one seed first reach a level, interpolated between the measured x."""
    ordered = rows.sort_values("x")
    x, y = list(ordered.x), list(ordered.value)
    for i in range(1, len(x)):
        if y[i] >= level:
            return float(x[i - 1] + (x[i] - x[i - 1]) * (level - y[i - 1]) / (y[i] - y[i - 1]))
    return float("nan")
