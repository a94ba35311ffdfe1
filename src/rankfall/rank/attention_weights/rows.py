"""Selection of rows on a layer as a whole."""

from rankfall.annotations import DataFrame, Series


def of_layer(table: DataFrame) -> Series:
    """Check whether a row is the mean over heads and not a single head."""
    return table.attention_head.isna()
