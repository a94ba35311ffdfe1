"""Which networks are trained."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def is_trained(table: "DataFrame") -> "Series":
    return table.epochs > 0
