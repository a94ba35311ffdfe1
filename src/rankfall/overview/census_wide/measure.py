"""The measure `census_wide`: what small models keep beside models of the released width, from the census by layer."""

from typing import Any

from rankfall.measure.context import Context

TABLE = "census_wide"
NEEDS = "tables"
TABLES = ["census_layers"]


def census_wide(context: Context) -> list[dict[str, Any]]:
    """Return the types that the census measures at both sizes with as many layers. Entries of `census_layers` with `size: wide` measure
    them."""
    from rankfall.census.folded import beside_wide
    from rankfall.overview.census.measure import plain_rows

    table = context.table("census_layers")
    rows = [] if table is None else beside_wide(plain_rows(table))
    return [row | {"off": abs(row["kept"] - row["kept_wide"])} for row in rows]
