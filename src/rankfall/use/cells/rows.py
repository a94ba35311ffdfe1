"""Selection of trained networks."""

from rankfall.annotations import DataFrame, Series


def is_trained(table: DataFrame) -> Series:
    return table.epochs > 0
