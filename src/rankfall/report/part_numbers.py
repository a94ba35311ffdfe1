"""Headline numbers of components: lookup of the row of a table that has an architecture's components with the same options."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rankfall import components
from rankfall.annotations import DataFrame, Series
from rankfall.design import canonical
from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.report.headlines import Headline
from rankfall.report.schema import schema

MADE_OF = ("attention", "normaliser", "position", "mask", "sentinels")


def find_beside(about: Mapping[str, Any], table: DataFrame, name: str, figure: str) -> tuple[Series | None, bool]:
    """Return the row of a table with the same components, and whether their options are equal as well. If no row has the same options, it
    is the row whose components have the same names. Return None if there is no such row; several rows are an error.
    """
    alike = table
    for column in MADE_OF:
        wanted = complete_options(column, about[column])[0]
        alike = alike.loc[[complete_options(column, value)[0] == wanted for value in alike[column]]]
    same = alike
    for column in MADE_OF:
        same = same.loc[
            [complete_options(column, value) == complete_options(column, about[column]) for value in same[column]]
        ]
    found = same if len(same) else alike
    if len(found) > 1:
        keys = [column for column in (*MADE_OF, *schema(name).key) if found[column].map(str).nunique() > 1]
        differ = "; ".join(f"{key}: {', '.join(sorted(found[key].map(str).unique()))}" for key in dict.fromkeys(keys))
        asked = ", ".join(about[column] for column in MADE_OF if isinstance(about[column], str))
        raise RankfallError(
            f"figure {figure}: {len(found)} rows of the table {name} match {asked}, which is ambiguous; "
            f"they differ in {differ or 'no column that identifies them'}"
        )
    return (found.iloc[0] if len(found) else None), len(same) > 0


def complete_options(kind: str, value: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and all options of a component in a table. Tables of cells contain all options, other tables only those in the
    configuration. The name is empty if no component reads the field."""
    if not isinstance(value, str):
        return "", {}
    name, given = parts(value)
    described = components.describe(kind, name)
    usual = {key: option.default for key, option in (described.options if described else {}).items() if option.plain}
    return name, usual | {key: json.loads(option) for key, option in given.items()}


Made = tuple[str, ...]


@dataclass(frozen=True)
class ByParts:
    """The rows of a table, and components -> the row that represents them: the one with the most of `OfParts.most`, then the deepest."""

    table: DataFrame
    places: dict[Made, Any]


def row_of(headline: Headline, rows: ByParts, row: Mapping[str, Any]) -> Series | str:
    """Return the row with the components of an architecture, or the reason why there is none."""
    assert headline.parts is not None
    asked = headline.parts.asked(row)
    if isinstance(asked, str):
        return asked
    key = (asked.get("block", ""), *made_of(asked[part] for part in MADE_OF))
    if key not in rows.places:
        return "no row of the table has these components with these options"
    return rows.table.loc[rows.places[key]]


def parts_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components by which an architecture mixes tokens."""
    return {column: row[column] for column in MADE_OF}


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def is_missing(value: Any) -> bool:
    return value is None or str(value) == "<NA>" or bool(value != value)


def by_parts(table: DataFrame | None, headline: Headline) -> ByParts | None:
    """Index a table by components for a headline; None if it is not a headline of components or the run has no such table."""
    if table is None or headline.parts is None:
        return None
    table = headline.rows(table)
    count = len(table)
    sizes = zip(table[headline.parts.most], table.depth if "depth" in table else [0] * count)
    size = [(-1 if is_missing(many) else many, 0 if is_missing(depth) else depth) for many, depth in sizes]
    blocks = table.block if "block" in table else [""] * count
    places: dict[Made, int] = {}
    for at, key in enumerate(zip(blocks, map(made_of, zip(*(table[part] for part in MADE_OF))))):
        about = (key[0], *key[1])
        if about not in places or size[at] > size[places[about]]:
            places[about] = at
    return ByParts(table, {about: table.index[at] for about, at in places.items()})


def made_of(parts: Iterable[Any]) -> Made:
    """Return components with all their options in canonical notation, in the order of MADE_OF."""
    return tuple(notation(part, text(value)) for part, value in zip(MADE_OF, parts))


@cache
def notation(kind: str, value: str | None) -> str:
    return canonical(complete_options(kind, value))
