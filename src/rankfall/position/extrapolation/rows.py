"""Baseline for the accuracy kept on longer text."""

from rankfall.annotations import DataFrame, Series


def compute_kept_by_chance(table: DataFrame) -> Series:
    """Return the share of the accuracy at the trained length that naming the most frequent word reaches."""
    return table.chance / table.accuracy_trained.where(table.accuracy_trained > 0)
