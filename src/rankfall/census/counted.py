"""Counts of measured types, and the reasons for those that are not measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankfall.census.outcomes import MEASURED, NOT_ELIGIBLE

Row = Mapping[str, Any]


def count_outcomes(rows: Sequence[Row]) -> str:
    """Return the count of each outcome and the measured share of eligible types, in one line."""
    tally = Counter(row["outcome"] for row in rows)
    eligible = [row for row in rows if row["outcome"] not in NOT_ELIGIBLE]
    said = ", ".join(f"{count} {name}" for name, count in tally.most_common())
    if not eligible:
        return f"{len(rows)} types: {said}"
    return (
        f"{len(rows)} types: {said}; {tally[MEASURED] / len(eligible):.1%} of {len(eligible)} eligible types measured"
    )


def refusals(rows: Iterable[Row]) -> list[str]:
    """Return a line for each eligible type that is not measured."""
    return [
        f"{row['type']}: {row['outcome']}: {row['reason'][:160]}"
        for row in rows
        if row["outcome"] != MEASURED and row["outcome"] not in NOT_ELIGIBLE
    ]
