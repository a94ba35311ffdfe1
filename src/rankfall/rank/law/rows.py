"""Which rows of the law have a residual."""

from collections.abc import Iterable

from rankfall.annotations import DataFrame, Series
from rankfall.report.selection import SPECS


def has_no_residual(table: DataFrame) -> Series:
    """Whether a row of the law has no residual, since all its vectors are equal or zero, or one that is rounding noise."""
    return table.log10_residual.isna() | table.floor.fillna(False).astype(bool)


def clear(table: DataFrame, by: Iterable[str] = SPECS) -> Series:
    """Whether a row of the law comes before the first layer at which a row of its group lacks its residual.

    A mean over what is left of a group would be of other networks than the point before it. A group: all seeds and samples, unless `by`
    says more."""
    groups = [table[name] for name in by if name in table]
    first = table.layer.where(has_no_residual(table)).groupby(groups, dropna=False).transform("min")
    return ~(table.layer >= first).fillna(False).astype(bool)
