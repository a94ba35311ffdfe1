"""Joins of tables about the same way to mix tokens. Rows are matched by components, because some tables do not name architectures."""

import json
from collections.abc import Mapping
from typing import Any

from rankfall import components
from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError
from rankfall.filters import parts
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
