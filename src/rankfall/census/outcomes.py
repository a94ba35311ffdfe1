"""The outcomes of model types in a census, and the sizes and interventions that are measured.

A type is *eligible* if the library builds a model with a stream of token vectors from its default configuration, without the network and
without a missing package. This is measured, not listed: the outcomes of `NOT_ELIGIBLE` are results of building and running a type.
`NO_DEFAULTS`: the library's default configuration builds no model at any size, so a checkpoint's configuration is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MEASURED = "measured"
NO_MODEL, NO_PACKAGE, NETWORK, NO_STREAM = "no model", "no package", "needs the network", "no stream"
NO_DEFAULTS = "needs a checkpoint's configuration"
NOT_BUILT, REFUSED, FAILS, OVER = "not built", "refused", "fails", "over a limit"
NOT_ELIGIBLE = (NO_MODEL, NO_PACKAGE, NETWORK, NO_DEFAULTS, NO_STREAM)

SMALL, WIDE = "small", "wide"  # sizes; the third is "released"
FACTORS = {"0_3": 0.3, "3": 3.0, "10": 10.0}  # factors of the weights
CHANGES = tuple(f"{scope}_{name}" for scope in ("weights", "layers") for name in FACTORS)
Row = Mapping[str, Any]


def count_outcomes(rows: Sequence[Row]) -> str:
    """Return the count of each outcome and the measured share of eligible types, in one line."""
    tally = Counter(row["outcome"] for row in rows)
    eligible = [row for row in rows if row["outcome"] not in NOT_ELIGIBLE]
    counts = ", ".join(f"{count} {name}" for name, count in tally.most_common())
    if not eligible:
        return f"{len(rows)} types: {counts}"
    return (
        f"{len(rows)} types: {counts}; {tally[MEASURED] / len(eligible):.1%} of {len(eligible)} eligible types measured"
    )


def refusals(rows: Iterable[Row]) -> list[str]:
    """Return a line for each eligible type that is not measured."""
    return [
        f"{row['type']}: {row['outcome']}: {row['reason'][:160]}"
        for row in rows
        if row["outcome"] != MEASURED and row["outcome"] not in NOT_ELIGIBLE
    ]
