"""Headline numbers of components: the row of a table that has those of an architecture, with the same options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rankfall import components
from rankfall.design import canonical
from rankfall.report.headlines import Headline
from rankfall.report.joins import whole

if TYPE_CHECKING:
    from pandas import DataFrame, Series

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
Made = tuple[str, ...]


@dataclass(frozen=True)
class ByParts:
    """A table, and which row is taken of what it is about: that of the most heads, or tokens, and the deepest."""

    table: DataFrame
    places: dict[Made, Any]


def row_of(headline: Headline, rows: ByParts, row: Mapping[str, Any]) -> Series | str:
    """Or why there is none."""
    about, at = {column: row[column] for column in MIXED}, ""
    if headline.table == "orders":
        at = "attention alone"
        if in_states(row["position"]):  # it is no part of the attention
            about["position"] = "none"
        if headline.name == "block_order":
            at = block(row) or ""
            if not at:
                return "no block of the table orders is made of these parts"
            if at != "attention alone" and any(
                about[part] not in ("none", None) for part in ("position", "mask", "sentinels")
            ):
                return "blocks are measured without position, mask and special tokens"
    key = (at, *made_of(about[part] for part in MIXED))
    if key not in rows.places:
        return "no row of the table has these components with these options"
    return rows.table.loc[rows.places[key]]


def text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def missing(value: Any) -> bool:
    return value is None or str(value) == "<NA>" or bool(value != value)


def by_parts(table: DataFrame | None, name: str) -> ByParts | None:
    """Of `orders` or `probe`."""
    if table is None:
        return None
    if name == "orders":
        table = table[(table.quantity == "res") & table.biases.astype(bool)]
    count = len(table)
    sizes = zip(table["heads" if name == "orders" else "tokens"], table.depth if "depth" in table else [0] * count)
    size = [(-1 if missing(many) else many, 0 if missing(depth) else depth) for many, depth in sizes]
    blocks = table.block if name == "orders" else [""] * count
    places: dict[Made, int] = {}
    for at, key in enumerate(zip(blocks, map(made_of, zip(*(table[part] for part in MIXED))))):
        about = (key[0], *key[1])
        if about not in places or size[at] > size[places[about]]:
            places[about] = at
    return ByParts(table, {about: table.index[at] for about, at in places.items()})


def made_of(parts: Iterable[Any]) -> Made:
    """Components with all their options, in one notation; in the order of MIXED."""
    return tuple(notation(part, text(value)) for part, value in zip(MIXED, parts))


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
    usual = all(
        notation(part, row[part]) == notation(part, name) for part, name in names.items()
    )  # orders are of these
    if row["block"] != "attention" or not alike or not usual:
        return None
    stands = "" if names["norm"] == "none" else row["norm_placement"]
    return BLOCKS.get((names["residual"], names["norm"], stands, names["mlp"]))
