"""Which rows are of a layer as a whole."""

from rankfall.annotations import DataFrame, Series


def of_layer(table: DataFrame) -> Series:
    """The mean over heads, not one of them."""
    return table.attention_head.isna()
