"""Declare what is shown of `attention_identity`: headline numbers, charts and selections of its rows."""

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart
from rankfall.report.selection import select

WHOLE = {"left_out": "nothing"}  # no token or channel is excluded
FREE = {**WHOLE, "quantity": "null"}
RANK = {**WHOLE, "quantity": "rank"}  # of the value matrix
TOLERANCE = 1e-6  # of the rank of the value matrix: above float32 rounding, below the size of meaningful weights
EXACT = 1e-10  # tolerance for double precision


def exact(table: DataFrame) -> DataFrame:
    """Return the rows without a tolerance, or with that of double precision."""
    return table[table.tolerance.isna() | (table.tolerance == EXACT)]


def of_heads(table: DataFrame) -> DataFrame:
    """Return the rows of single heads, at the longest sequence of each network."""
    heads = table[table.attention_head.notna()]
    return heads[heads.tokens == heads.groupby("key").tokens.transform("max")]


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


CHARTS = (
    Chart(
        "free",
        "Free directions of attention weights",
        "In how many directions a row of attention weights can change, its sum too, without any change of the layer's output, mean over "
        "heads. More than 0: the weights do not say by themselves where the output comes from.",
        "layer",
        "value",
        "layer",
        "free directions",
        choose=(*NETWORK, "tolerance"),
        start={"training": "converged", "tolerance": TOLERANCE},
        where=FREE,
        most=("tokens",),
        within=POSITIVE,
        place=10,
    ),
)
