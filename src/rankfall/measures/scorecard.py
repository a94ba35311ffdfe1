"""Scorecard: the headline numbers of every study for each architecture of the run, with their deviation over seeds.

An architecture is a name in the configuration and what it is made of: where the grid sets a part of it (a normaliser, a position), each
is a row of its own. Its networks may have several settings (task, training, depth, sizes), and a number is the mean over the seeds of one
of them. Which one follows from a rule, the same for all architectures, so that numbers are as comparable as can be: untrained networks
first, or trained ones, as the number says; then the setting that most architectures have been measured at; then the deepest.

A mean is given only where every seed has a number. Otherwise there is none, and a reason. Orders of contraction and the probe at random
weights belong to components, not to networks: they are those of the row with the same components and options.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from rankfall import components
from rankfall.design import canonical
from rankfall.report.cell_numbers import OF_CELLS
from rankfall.report.headlines import HEADLINES, Headline
from rankfall.report.joins import whole
from rankfall.report.schemas.scorecard import MADE_OF
from rankfall.report.variants import placed

if TYPE_CHECKING:
    from pandas import DataFrame, Series

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
MIXED = ("attention", "normaliser", "position", "mask", "sentinels")
BLOCKS = {  # residual, norm, where it stands, mlp -> the block of the table `orders`
    ("none", "none", "", "none"): "attention alone",
    ("none", "none", "", "gelu"): "MLP",
    ("none", "layer", "post", "none"): "post-norm",
    ("none", "layer", "pre", "none"): "pre-norm",
    ("none", "rms", "post", "none"): "RMS norm",
    ("none", "column", "post", "none"): "column norm",
    ("add", "none", "", "none"): "skip",
    ("add", "layer", "post", "none"): "skip, post-norm",
    ("add", "layer", "pre", "none"): "skip, pre-norm",
    ("add", "layer", "post", "gelu"): "transformer",
}
USED = ["key", "architecture", "design", "setting", "trained", "depth", "seed", "status", "reason"]
Value = dict[str, Any]
Made = tuple[str, ...]


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


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def of_networks(headline: Headline, table: "DataFrame | None", cells: "DataFrame") -> dict[Any, Value]:
    """(architecture, design) -> value, of a number of single networks."""
    places = list(cells.groupby(["architecture", "design"]).groups)
    if table is None:
        return dict.fromkeys(places, none(f"this run does not make the table {headline.table}"))
    asked = cells.loc[cells.key.isin(table.key), USED]
    if headline.first == "only trained":
        asked = asked[asked.trained]
    number = OF_CELLS[headline.name](table[table.status == "done"])
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


def of_parts(headline: Headline, rows: "dict[Made, list[Series]] | None", row: Mapping[str, Any]) -> Value:
    """The value of the row with the same components as an architecture; `rows`: by these."""
    if rows is None:
        return none(f"this run does not make the table {headline.table}")
    about, at, size = {column: row[column] for column in MIXED}, "", "tokens"
    if headline.table == "orders":
        at, size = "attention alone", "heads"
        if in_states(row["position"]):  # it is no part of the attention
            about["position"] = "none"
        if headline.name == "block_order":
            at = block(row) or ""
            if not at:
                return none("no block of the table orders is made of these parts")
            if at != "attention alone" and any(about[part] != "none" for part in ("position", "mask", "sentinels")):
                return none("blocks are measured without position, mask and special tokens")
    alike = rows.get((at, *made_of(about)), [])
    if not alike:
        return none("no row of the table has these components with these options")
    one = max(alike, key=lambda found: (-1 if missing(found[size]) else found[size], found.get("depth", 0)))
    if headline.table == "orders":
        number, spread, where = one.order, one.uncertainty, f"{one.block}, {one.draws} draws"
    else:
        number, spread, where = one.untrained_rows, None, f"{one.tokens} tokens, {one.draws} draws"
        number = number if missing(number) else number / one.tokens
    if missing(number):
        return none(str(one.reason) or "it has no number") | {"_at": where}
    known = {"": float(number), "_deviation": None if missing(spread) else float(spread)}
    return none("") | known | {"_at": where}


def missing(value: Any) -> bool:
    return value is None or bool(value != value) or str(value) == "<NA>"


def by_parts(table: "DataFrame | None", name: str) -> "dict[Made, list[Series]] | None":
    """The rows of a table by what they are about."""
    if table is None:
        return None
    if name == "orders":
        table = table[(table.quantity == "res") & table.biases.astype(bool)]
    found: dict[Made, list[Series]] = {}
    for _, row in table.iterrows():
        found.setdefault((row.block if name == "orders" else "", *made_of(row)), []).append(row)
    return found


def made_of(about: Any) -> tuple[str, ...]:
    """Components with all their options, in one notation."""
    return tuple(notation(column, text(about[column])) for column in MIXED)


@cache
def notation(kind: str, value: str | None) -> str:
    return canonical(whole(kind, value))


def in_states(position: str) -> bool:
    """Whether a position enters the states alone."""
    found = components.describe("position", position.partition("(")[0])
    return found is not None and tuple(found.facts.get("TOUCHES", ())) == ("states",)


def block(row: Mapping[str, Any]) -> str | None:
    """The name that the table `orders` has for what surrounds the attention."""
    names = {part: str(row[part]).partition("(")[0] for part in ("residual", "norm", "mlp")}
    alike = names["mlp"] == "none" or row["mlp_residual"] == row["residual"]
    if row["block"] != "attention" or not alike:
        return None
    stands = "" if names["norm"] == "none" else row["norm_placement"]
    return BLOCKS.get((names["residual"], names["norm"], stands, names["mlp"]))
