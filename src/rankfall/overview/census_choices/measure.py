"""A regression of what types keep on the choices of their design, from the census by layer."""

from typing import Any

from rankfall.measure.context import Context

TABLE = "census_choices"
NEEDS = "tables"
TABLES = ["census_layers"]
LIMITS = {"draws": (100, None)}


def census_choices(context: Context, *, draws: int = 1000) -> list[dict[str, Any]]:
    """`draws` of the bootstrap."""
    from rankfall.census.choices import explain
    from rankfall.overview.census.measure import types_of

    table = context.table("census_layers")
    if table is None:
        return []
    found = explain(types_of(table), draws)
    about = {"types": found.rows, "families": found.families, "share": found.share}
    return [
        {"choice": one.choice, "chosen": one.types, "effect": one.effect, "low": one.low, "high": one.high, "gain": one.gain,
         "reason": one.reason} | about
        for one in found.effects
    ]  # fmt: skip
