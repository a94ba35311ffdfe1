"""The measure of the census: one row per model type, from the table by layer."""

from typing import Any

from rankfall.annotations import DataFrame
from rankfall.measure.context import Context

NEEDS = "tables"
TABLES = ["census_layers"]


def census(context: Context) -> list[dict[str, Any]]:
    """Return a row for each type. For a type with several streams it is of the stream with the most layers."""
    from rankfall.census.folded import fold
    from rankfall.overview.census_columns import SHARED

    table = context.table("census_layers")
    return [] if table is None else fold(plain_rows(table), SHARED)


def plain_rows(table: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table with None for null."""
    rows: list[dict[str, Any]] = table.astype(object).where(table.notna(), None).to_dict("records")
    return rows
