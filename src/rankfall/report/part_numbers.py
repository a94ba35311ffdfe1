"""Headline numbers of components: lookup of the row of a table that has an architecture's components with the same options."""

import json
from collections.abc import Mapping
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


def find_beside(
    architecture: Mapping[str, Any], table: DataFrame, name: str, figure: str
) -> tuple[Series | None, bool]:
    """Return the row of a table with the same components, and whether their options are equal as well. If no row has the same options, it
    is the row whose components have the same names. Return None if there is no such row; several rows are an error.
    """
    wanted = {column: complete_options(column, architecture[column]) for column in MADE_OF}
    rows = [{column: complete_options(column, row[column]) for column in MADE_OF} for _, row in table.iterrows()]
    same_options = table.loc[[row == wanted for row in rows]]
    same_names = table.loc[[all(row[column][0] == name for column, (name, _) in wanted.items()) for row in rows]]
    matches = same_options if len(same_options) else same_names
    if len(matches) > 1:
        keys = [column for column in (*MADE_OF, *schema(name).key) if matches[column].map(str).nunique() > 1]
        names = ", ".join(architecture[column] for column in MADE_OF if isinstance(architecture[column], str))
        raise RankfallError(
            f"figure {figure}: {len(matches)} rows of the table {name} match {names}, which is ambiguous; "
            f"they differ in {', '.join(dict.fromkeys(keys)) or 'no column that identifies them'}"
        )
    return (matches.iloc[0] if len(matches) else None), len(same_options) > 0


def complete_options(kind: str, value: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and all options of a component in a table. Tables of cells contain all options, other tables only those in the
    configuration. The name is empty if no component reads the field."""
    if not isinstance(value, str):
        return "", {}
    name, options = parts(value)
    described = components.describe(kind, name)
    defaults = {key: option.default for key, option in (described.options if described else {}).items() if option.plain}
    return name, defaults | {key: json.loads(option) for key, option in options.items()}


# Components in canonical notation, after the block -> the row that represents them: the one with the most of `OfParts.most`, then the
# deepest.
ByParts = dict[tuple[str, ...], Any]


def row_of(headline: Headline, rows: ByParts, row: Mapping[str, Any]) -> Series | str:
    """Return the row with the components of an architecture, or the reason why there is none."""
    assert headline.parts is not None
    wanted = headline.parts.asked(row)
    if isinstance(wanted, str):
        return wanted
    made_of = [notation(part, text_or_none(wanted[part])) for part in MADE_OF]
    key = (wanted.get("block", ""), *made_of)
    if key in rows:
        return rows[key]
    known = zip(*(key[1:] for key in rows), strict=True)
    unknown = [f"{part} {wanted[part]}" for part, name, names in zip(MADE_OF, made_of, known) if name not in names]
    if not unknown:
        return "no row of the table has these components together"
    return f"the table has no {' and no '.join(unknown)}: name it in the options of the measure {headline.table}"


def parts_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components by which an architecture mixes tokens."""
    return {column: row[column] for column in MADE_OF}


def text_or_none(value: Any) -> str | None:
    """Return a value if it is a text; missing values of a column become None."""
    return value if isinstance(value, str) else None


def is_missing(value: Any) -> bool:
    """Return whether a value of a row is None, NaN or pandas' NA."""
    return value is None or str(value) == "<NA>" or bool(value != value)


def by_parts(table: DataFrame, headline: Headline) -> ByParts:
    """Index a table by components for a headline of components."""
    from pandas import DataFrame

    assert headline.parts is not None
    table = headline.rows(table)
    blocks = table.block if "block" in table else [""] * len(table)
    made_of = ([notation(part, text_or_none(value)) for value in table[part]] for part in MADE_OF)
    size = {"most": table[headline.parts.most].fillna(-1), "depth": table.depth.fillna(0) if "depth" in table else 0}
    index = DataFrame({"key": list(zip(blocks, *made_of)), **size}, table.index)
    first = index.sort_values(["most", "depth"], ascending=False).drop_duplicates("key")
    return {key: table.loc[at] for at, key in first.key.items()}


@cache
def notation(kind: str, value: str | None) -> str:
    """Return a component with all its options in canonical notation."""
    return canonical(complete_options(kind, value))
