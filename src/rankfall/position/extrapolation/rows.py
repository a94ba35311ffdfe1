"""What rows of the table are compared with."""

from rankfall.annotations import DataFrame, Series


def compute_kept_by_chance(table: DataFrame) -> Series:
    """Of the accuracy at the trained length, by naming the most frequent word."""
    return table.chance / table.accuracy_trained.where(table.accuracy_trained > 0)
