"""A headline number: what it is, which rows of its table it is made of, and how. A quantity declares its own in `headline.py` of its folder
(`rank/law/headline.py`), as `HEADLINES`; here they are found.

The scorecard's columns, its figure, the page and docs/tables.md all say it with these words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankfall.report.quantities import declarations_of

Rows = Callable[[Any], Any]  # a table -> the rows that numbers are made of
# Of networks: these rows -> a row for each `key`, with its `number`, or `why` there is none, and a column for each name in `beside`.
Number = Callable[[Any], Any]


@dataclass(frozen=True)
class OfParts:
    """How a number of components is found for an architecture. `asked`: a row of the scorecard -> the components that the row of the table
    must have (of `part_numbers.MIXED`, and `block` where the table has one), or why there is none; `most`: of several such rows the one
    with most of this."""

    asked: Callable[[Mapping[str, Any]], dict[str, Any] | str]
    most: str


@dataclass(frozen=True)
class PartNumber:
    """A number of a row of components; `at`: what it was measured on."""

    number: Any
    at: str
    deviation: Any = None
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Headline:
    """One number of an architecture at a setting, or of its components at any. `first`: the networks that it is asked of first; `good`:
    which end of the column keeps more of what depth may lose; `beside`: what the number is compared with (chance, ceiling, floor), each
    a column, with its meaning; `counted`: what a number is a mean over; `scale`: on which numbers are drawn and compared, seed by seed;
    `least`: of components, a difference of so much or less is none; `place`: among those of its study, the lowest first."""

    name: str
    title: str  # a column's heading
    meaning: str
    columns: tuple[str, ...]  # of its table, that it is made of
    rows: Rows
    number: Number  # of components: a row of the table -> its PartNumber
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
    study: str = ""  # one of STUDIES; by default that of its folder
    table: str = ""  # that of its folder

    @property
    def components(self) -> bool:
        """Whether it is a number of components, not of networks."""
        return self.parts is not None


def headlines() -> tuple[Headline, ...]:
    """Of every study and of modules of users, in the order of the scorecard."""
    found: tuple[Headline, ...] = declarations_of("headline")
    return found


def by_name(name: str) -> Headline:
    (found,) = (headline for headline in headlines() if headline.name == name)
    return found


SHOWN = ("name", "title", "study", "meaning", "table", "columns", "unit", "first", "good", "digits", "provenance", "beside",
         "counted")  # fmt: skip


def describe(headline: Headline) -> dict[str, Any]:
    """For the page."""
    return {name: getattr(headline, name) for name in SHOWN}
