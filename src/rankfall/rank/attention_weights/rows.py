"""Which rows are of a layer as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def of_layer(table: DataFrame) -> Series:
    """The mean over heads, not one of them."""
    return table.attention_head.isna()
