"""Selection of rows on a layer's whole attention, for cells and for models."""

from rankfall.annotations import DataFrame

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
