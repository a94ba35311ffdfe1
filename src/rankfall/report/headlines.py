"""Headline numbers: their meaning, and the rows of a table and the function that they are computed from. A quantity declares its headlines
as `HEADLINES` in `shown.py` of its folder (`rank/law/shown.py`). The scorecard's columns, its figure, the page and the documentation all
use these texts.

The functions compute numbers of single networks: one row per network with `number`, or with the reason `why` it has none, and a column for
each number that it is compared with (`Headline.beside`).
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankfall.annotations import DataFrame, Series
from rankfall.report.quantities import declarations_of

Rows = Callable[[Any], Any]  # a table -> the rows that numbers are computed from
# For networks: these rows -> a row for each `key`, with `number`, or the reason `why` it has none, and a column for each name in `beside`.
Number = Callable[[Any], Any]


@dataclass(frozen=True)
class OfParts:
    """The lookup of a number of components for an architecture. `asked`: a row of the scorecard -> the components that the row of the table
    must have (kinds of `part_numbers.MIXED`, and `block` if the table has it), or the reason why there is none; `most`: the column that
    selects one of several such rows, by its largest value."""

    asked: Callable[[Mapping[str, Any]], dict[str, Any] | str]
    most: str


@dataclass(frozen=True)
class PartNumber:
    """The number of a row of components; `at`: what it was measured on."""

    number: Any
    at: str
    deviation: Any = None
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Headline:
    """A number of an architecture in a setting, or of its components in any setting. `first`: the networks whose setting is preferred, or
    the only ones that have the number; `good`: the end of the column that keeps more of what depth may lose; `beside`: columns that the
    number is compared with (chance, ceiling, floor) -> their meanings; `counted`: what a number is a mean over; `scale`: the scale on which
    numbers are drawn and compared, seed by seed; `least`: the largest difference between components that counts as none; `place`: the
    position in its study, lowest first."""

    name: str
    title: str  # a column's heading
    meaning: str
    columns: tuple[str, ...]  # columns of its table that it is computed from
    rows: Rows
    number: Number  # for components: a row of the table -> its PartNumber
    unit: str = ""
    first: Literal["untrained", "trained", "only trained"] = "untrained"
    good: Literal["high", "low"] | None = "high"
    digits: int = 2
    provenance: bool = False  # differs between equal runs: times
    beside: Mapping[str, str] = field(default_factory=dict)
    counted: str = "seed"
    scale: Literal["linear", "log"] = "linear"
    least: float = 0.0
    parts: OfParts | None = None
    place: int = 1000
    study: str = ""  # one of STUDIES; by default the study of its folder
    table: str = ""  # by default the table of its folder

    @property
    def components(self) -> bool:
        """Return whether it is a number of components and not of networks."""
        return self.parts is not None

    @property
    def has_chances(self) -> bool:
        """Return whether each seed has a chance of its own."""
        return "chance" in self.beside and not self.components

    def fields(self) -> dict[str, Any]:
        """Return the fields that the page's script needs."""
        return {name: value for name, value in vars(self).items() if name not in ("rows", "number", "parts")}


def headlines() -> tuple[Headline, ...]:
    """Return the headlines of all studies and of users' modules, in the order of the scorecard."""
    return declarations_of("headline")


def by_name(name: str) -> Headline:
    """Return the headline of this name."""
    (headline,) = (headline for headline in headlines() if headline.name == name)
    return headline


Line = list[tuple[int, float]]  # layer, value; from layer 0
NOTHING = 1e-9  # a relative residual up to this is rounding of equal tokens
EQUAL = "its task puts in equal tokens, whose residual is 0 from the start"


def all_rows(table: DataFrame) -> DataFrame:
    """Return the table itself, for headlines that use all rows."""
    return table


def plain(table: DataFrame, column: str, why: Any = None, **beside: Series) -> DataFrame:
    """Return a column of the table as the numbers of networks; `beside`: name in the headline -> values that they are compared with."""
    numbers = table[["key"]].assign(number=table[column].astype(float), why="" if why is None else why)
    compared = {name: values.astype(float) for name, values in beside.items()}
    return numbers.assign(why=numbers.why.where(numbers.number.isna() & (numbers.why != ""), ""), **compared)


def at_last(lines: DataFrame) -> DataFrame:
    """Return the rows of the last layer of each cell."""
    return lines[lines.layer == lines.groupby("key").layer.transform("max")]


def by_cell(lines: DataFrame, number: Callable[[Line], tuple[float | None, str]], *, whole: bool = False) -> DataFrame:
    """Compute `number` for each cell from its values by layer, up to the first layer without a value. If `number` returns None there, the
    cell has that layer's reason. `whole`: the number needs all layers, so that a missing value always gives the reason."""
    import pandas as pd

    lines = lines.sort_values(["key", "layer"])
    reasons = lines.value_reason.fillna("").tolist() if "value_reason" in lines else [""] * len(lines)
    rows = zip(lines.key.tolist(), lines.layer.tolist(), lines.value.astype(float).tolist(), reasons)
    numbers = []
    for key, part in itertools.groupby(rows, key=lambda row: row[0]):
        line = [(layer, value, reason) for _, layer, value, reason in part]
        clear = list(itertools.takewhile(lambda point: not math.isnan(point[1]), line))
        value, why = number([(layer, value) for layer, value, _ in clear]) if clear else (None, "")
        if len(clear) < len(line) and (value is None or whole) and why != EQUAL:
            layer, _, reason = line[len(clear)]
            value, why = None, f"from layer {layer} on there is no residual" + (f": {reason}" if reason else "")
        numbers.append((key, value, why))
    return pd.DataFrame(numbers, columns=["key", "number", "why"]).astype({"number": float})
