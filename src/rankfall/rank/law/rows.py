"""Selection of rows of the law that have a residual."""

from collections.abc import Iterable

from rankfall.annotations import DataFrame, Series
from rankfall.report.selection import SPECS


def has_no_residual(table: DataFrame) -> Series:
    """Check whether a row of the law has no residual, because all its vectors are equal or zero, or because it is rounding noise."""
    return table.log10_residual.isna() | table.floor.fillna(False).astype(bool)


def clear(table: DataFrame, by: Iterable[str] = SPECS) -> Series:
    """Check whether a row of the law comes before the first layer at which a row of its group lacks a residual.

    A mean over the remaining rows of a group would be over other networks than the point before it. A group is all seeds and samples,
    unless `by` adds more columns.
    """
    groups = [table[name] for name in by if name in table]
    first = table.layer.where(has_no_residual(table)).groupby(groups, dropna=False).transform("min")
    return ~(table.layer >= first).fillna(False).astype(bool)
