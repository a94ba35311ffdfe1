"""Headline numbers: the order of contraction of an architecture's attention, and of its block."""

from collections.abc import Mapping
from typing import Any

from rankfall import components
from rankfall.annotations import DataFrame, Series
from rankfall.rank.orders.rows import BARE, BLOCKS, NEAR, ORDER
from rankfall.report.headlines import Headline, OfParts, PartNumber
from rankfall.report.part_numbers import notation, parts_of
from rankfall.report.selection import select


def with_biases(table: DataFrame) -> DataFrame:
    return select(table, ORDER)


def of_attention(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components of the attention alone. A position that acts on the states is not part of it."""
    about = parts_of(row) | {"block": BARE}
    return about | {"position": "none"} if in_states(row["position"]) else about


def of_block(row: Mapping[str, Any]) -> dict[str, Any] | str:
    about, block = of_attention(row), block_of(row)
    if not block:
        return "no block of the table orders is made of these parts"
    if block != BARE and about["sentinels"] not in ("none", None):
        return "blocks are measured without special tokens"
    if (
        block != BARE
        and row["residual"] == "none"
        and any(about[part] not in ("none", None) for part in ("position", "mask"))
    ):
        return "blocks without skip connections are measured without position and mask"
    return about | {"block": block}


def in_states(position: str) -> bool:
    """Check whether a position acts on the states alone."""
    return tuple(components.facts_of("position", position.partition("(")[0]).get("TOUCHES", ())) == ("states",)


def block_of(row: Mapping[str, Any]) -> str | None:
    """Return the name in the table `orders` of the parts around the attention, or None if the table has no such block."""
    names = {part: str(row[part]).partition("(")[0] for part in ("residual", "norm", "mlp")}
    alike = names["mlp"] == "none" or row["mlp_residual"] == row["residual"]
    usual = all(
        notation(part, row[part]) == notation(part, name) for part, name in names.items()
    )  # orders are measured with default options
    if row["block"] != "attention" or not alike or not usual:
        return None
    stands = "" if names["norm"] == "none" else row["norm_placement"]
    return BLOCKS.get((names["residual"], names["norm"], stands, names["mlp"]))


def order(one: Series) -> PartNumber:
    return PartNumber(one.order, f"{one.block}, {one.draws} draws", one.uncertainty)


HEADLINES = (
    Headline(
        "order",
        "order of its attention",
        "p in out ~ C in^p for nearly identical tokens, of the attention layer by itself: 3 collapses doubly exponentially with depth, "
        "1 exponentially, 0 not at all; deviation: uncertainty of the fit",
        ("order", "uncertainty"),
        with_biases,
        order,
        good="low",
        least=NEAR,
        parts=OfParts(of_attention, "heads"),
        place=10,
    ),
    Headline(
        "block_order",
        "order of its block",
        "the same of the whole block, with its skip connection, norm, MLP, mask and relative position, but without special tokens",
        ("order", "uncertainty"),
        with_biases,
        order,
        good="low",
        least=NEAR,
        parts=OfParts(of_block, "heads"),
        place=11,
    ),
)
