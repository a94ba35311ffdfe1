"""Rows of different tables about the same way to mix tokens, joined by what it is made of, since one table's architectures have names and
another's have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.report.schema import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pandas import DataFrame, Series

MADE_OF = ("attention", "normaliser", "position", "mask", "sentinels")


def beside(about: Mapping[str, Any], table: DataFrame, name: str, figure: str) -> tuple[Series | None, bool]:
    """The one row of a table about the same components, and whether their options are the same too: where no row has the same options,
    it is the one whose components have the same names. None if there is no row; several are an error.
    """
    alike = table
    for column in MADE_OF:
        alike = alike[alike[column].map(name_of) == name_of(about[column])]
    same = alike
    for column in MADE_OF:
        same = same[same[column].map(text_of) == text_of(about[column])]
    found = same if len(same) else alike
    if len(found) > 1:
        keys = [column for column in (*MADE_OF, *schema(name).key) if found[column].map(str).nunique() > 1]
        differ = "; ".join(f"{key}: {', '.join(sorted(found[key].map(str).unique()))}" for key in dict.fromkeys(keys))
        wanted = ", ".join(text_of(about[column]) or "none" for column in MADE_OF)
        raise RankfallError(
            f"figure {figure}: {len(found)} rows of the table {name} fit {wanted}, and it is not known which is meant; "
            f"they differ in {differ or 'no column that says what they are'}"
        )
    return (found.iloc[0] if len(found) else None), len(same) > 0


def text_of(value: Any) -> str:
    """A component as tables have it; empty where nothing reads it."""
    return value if isinstance(value, str) else ""


def name_of(value: Any) -> str:
    return parts(value)[0] if isinstance(value, str) else ""
