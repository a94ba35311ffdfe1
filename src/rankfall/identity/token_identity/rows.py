"""Selection of rows by map, loss, candidates and distance, for cells and for models."""

from rankfall.annotations import DataFrame, Series

NEAREST = {"candidates": "sentence", "distance": "cosine"}  # default candidates and distance
LINEAR = {"map": "linear", "loss": "cosine"}
ASKED = {**LINEAR, **NEAREST}


def is_own(table: DataFrame) -> Series:
    """Check whether a map is untrained or applied to the layer that it was trained on."""
    return (table.trained_layer.isna() | (table.trained_layer == table.layer)).astype(bool)
