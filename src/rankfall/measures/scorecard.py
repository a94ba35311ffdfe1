"""Scorecard: the headline numbers of every study for each architecture of the run, with their deviation over seeds.

An architecture is a name in the configuration and what it is made of: where the grid sets a part of it (a normaliser, a position), each
is a row of its own. Its networks may have several settings (task, training, depth, sizes), and a number is the mean over the seeds of one
of them. Which one follows from a rule, the same for all architectures, so that numbers are as comparable as can be: untrained networks
first, or trained ones, as the number says; then the setting that most architectures have been measured at; then the deepest.

A mean is given only where every seed has a number. Otherwise there is none, and a reason. Orders of contraction and the probe at random
weights belong to components, not to networks: they are those of the row with the same components and options.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankfall.report.cell_numbers import OF_CELLS
from rankfall.report.headlines import HEADLINES, Headline
from rankfall.report.part_numbers import ByParts, by_parts, missing, row_of, text
from rankfall.report.schemas.scorecard import MADE_OF
from rankfall.report.variants import placed

if TYPE_CHECKING:
    from pandas import DataFrame

    from rankfall.measures._context import Context

TABLE = "scorecard"
NEEDS = "tables"
TABLES = [
    "cells",
    "residuals",
    "orders",
    "paths",
    "probe",
    "probe_trained",
    "extrapolation",
    "attention_identity",
    "token_identity",
    "attribution",
]  # of these, what the run makes
USED = ["key", "architecture", "design", "setting", "trained", "depth", "seed", "status", "reason"]
Value = dict[str, Any]


def scorecard(context: "Context") -> list[dict[str, Any]]:
    """A table that the run does not make is None."""
    cells = context.table("cells")
    if cells is None or not len(cells):
        return []
    cells = placed(cells)
    rows = {}
    for (name, number), part in cells.groupby(["architecture", "design"]):
        one = part.iloc[0]
        rows[name, number] = {
            "architecture": name,
            "variant": one.variant,
            **{column: text(one[column]) for column in MADE_OF},
            "cells": len(part),
            "done": int((part.status == "done").sum()),
        }
    parts = {name: by_parts(context.table(name), name) for name in ("orders", "probe")}
    for headline in HEADLINES:
        table = context.table(headline.table)
        numbers = of_networks(headline, table, cells) if headline.name in OF_CELLS else None
        for place, row in rows.items():
            found = (
                of_parts(headline, parts[headline.table], row)
                if numbers is None
                else numbers.get(place, none("it has no networks"))
            )
            row |= {f"{headline.name}{suffix}": value for suffix, value in found.items()}
    return list(rows.values())


def none(reason: str) -> Value:
    return {"": None, "_deviation": None, "_seeds": None, "_at": None, "_reason": reason}


def of_networks(headline: Headline, table: "DataFrame | None", cells: "DataFrame") -> dict[Any, Value]:
    """(architecture, design) -> value, of a number of single networks."""
    places = list(cells.groupby(["architecture", "design"]).groups)
    if table is None:
        return dict.fromkeys(places, none(f"this run does not make the table {headline.table}"))
    asked = cells.loc[cells.key.isin(table.key), USED]
    if headline.first == "only trained":
        asked = asked[asked.trained]
    made = OF_CELLS[headline.name]
    number = made.number(made.rows(table[table.status == "done"]))
    found = asked.merge(number, on="key", how="left")
    where = dict(list(found.groupby(["architecture", "design"])))
    ranks = ranking(headline, found)
    return {place: chosen(headline, where.get(place), ranks, cells) for place in places}


def ranking(headline: Headline, found: "DataFrame") -> dict[str, tuple[Any, ...]]:
    """Setting -> what it is sorted by: the smallest is taken."""
    numbered = found[found.number.notna() | (found.why.fillna("") != "")]
    counts = numbered[["setting", "architecture", "design"]].drop_duplicates().setting.value_counts()
    about = found.groupby("setting").agg(trained=("trained", "first"), depth=("depth", "first"))
    last = headline.first == "untrained"
    return {
        str(setting): (bool(one.trained) == last, -int(counts.get(setting, 0)), -int(one.depth), str(setting))
        for setting, one in about.iterrows()
    }


def chosen(headline: Headline, found: "DataFrame | None", ranks: Mapping[str, Any], cells: "DataFrame") -> Value:
    """Mean and deviation over the seeds of the first setting."""
    if found is None:
        only = headline.first == "only trained"
        return none("none of its trained networks was measured" if only else "its networks were not measured")
    setting = min(found.setting.unique(), key=lambda one: ranks[one])
    part = found[found.setting == setting]
    lacking = part[part.number.isna()]
    if len(lacking):
        first = lacking.iloc[0]
        why = first.why if isinstance(first.why, str) and first.why else ""
        why = why or (first.reason or first.status if first.status != "done" else "its rows have no such number")
        many = f"in {len(lacking)} of {len(part)} seeds" if len(part) > 1 else ""
        return none(f"{setting}: {why}" + (f" ({many})" if many else "")) | {"_at": setting}
    return {
        "": float(part.number.mean()),
        "_deviation": float(part.number.std(ddof=1)) if len(part) > 1 else None,
        "_seeds": len(part),
        "_at": setting,
        "_reason": "",
    }


def of_parts(headline: Headline, rows: "ByParts | None", row: Mapping[str, Any]) -> Value:
    """The value of the row with the same components as an architecture."""
    if rows is None:
        return none(f"this run does not make the table {headline.table}")
    one = row_of(headline, rows, row)
    if isinstance(one, str):
        return none(one)
    if headline.table == "orders":
        number, spread, where = one.order, one.uncertainty, f"{one.block}, {one.draws} draws"
    else:
        number, spread, where = one.untrained_rows, None, f"{one.tokens} tokens, {one.draws} draws"
        number = number if missing(number) else number / one.tokens
    if missing(number):
        return none(str(one.reason) or "it has no number") | {"_at": where}
    known = {"": float(number), "_deviation": None if missing(spread) else float(spread)}
    return none("") | known | {"_at": where}
