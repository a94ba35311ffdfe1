"""Headline number: the directions in which attention weights can change without a change of the output."""

from rankfall.annotations import DataFrame
from rankfall.identity.attention_identity.rows import FREE, TOLERANCE, of_heads
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.selection import select


def free(table: DataFrame) -> DataFrame:
    return at_last(of_heads(select(table, {**FREE, "tolerance": TOLERANCE})))


def null_dimension(rows: DataFrame) -> DataFrame:
    heads = rows.groupby("key").value
    return plain(heads.mean().where(heads.count() == heads.size()).reset_index(), "value")


HEADLINES = (
    Headline(
        "null_dimension",
        "free directions of attention weights",
        "dimensions in which a row of attention weights of the last layer, its sum too, can change without a change of the output, at "
        "tolerance 1e-6; mean over heads, at the longest sequence",
        ("layer", "attention_head", "tokens", "left_out", "quantity", "tolerance", "value"),
        free,
        null_dimension,
        unit="dimensions",
        first="trained",
        good="low",
        place=10,
    ),
)
