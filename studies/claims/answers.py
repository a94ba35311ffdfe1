"""Answers of several comparisons: True, False, or None where an interval lies on both sides of its threshold."""

from collections.abc import Iterable
from typing import TypedDict

from rankfall import Band


class Conditions(TypedDict):
    """The conditions of a verdict, as passed to `judge`."""

    holds: bool
    in_part: bool
    contradicted: bool


def by_parts(parts: Iterable[bool | None]) -> Conditions:
    """Return the conditions that `judge` takes: a statement holds if all its parts do, in part if some do and some do not, and is
    contradicted if none does. A part without an answer leaves it undecided, unless others differ."""
    answers = set(parts)
    return {"holds": answers == {True}, "in_part": {True, False} <= answers, "contradicted": answers == {False}}


def true_of_all(answers: Iterable[bool | None]) -> bool | None:
    """Return False if one answer is, else None if one is missing."""
    answers = set(answers)
    return False if False in answers else (None if None in answers else True)


def true_of_any(answers: Iterable[bool | None]) -> bool | None:
    """Return True if one answer is, else None if one is missing."""
    answers = set(answers)
    return True if True in answers else (None if None in answers else False)


def lies_between(found: Band, low: float, high: float) -> bool | None:
    """Return whether the whole interval lies between two thresholds, None where it reaches across one of them."""
    if low < found.low and found.high < high:
        return True
    return False if found.high < low or found.low > high else None
