"""Which rows of the table, and of that of real models, are of a layer's whole attention."""

from rankfall.annotations import DataFrame

WHOLE = {"left_out": "nothing"}  # no token's weights are set to 0
FREE = {**WHOLE, "quantity": "null"}
RANK = {**WHOLE, "quantity": "rank"}  # of the value matrix
TOLERANCE = 1e-6  # of the rank of the value matrix: above float32's rounding, below what a weight says
EXACT = 1e-10  # of double precision


def exact(table: DataFrame) -> DataFrame:
    """What has no tolerance, or that of double precision."""
    return table[table.tolerance.isna() | (table.tolerance == EXACT)]


def of_heads(table: DataFrame) -> DataFrame:
    """Of each head, at the longest sequence of each network."""
    heads = table[table.attention_head.notna()]
    return heads[heads.tokens == heads.groupby("key").tokens.transform("max")]
