"""Which rows of the table, and of that of real models, are asked how?"""

from rankfall.annotations import DataFrame, Series

NEAREST = {"candidates": "sentence", "distance": "cosine"}  # how a token is looked for by default
LINEAR = {"map": "linear", "loss": "cosine"}
ASKED = {**LINEAR, **NEAREST}


def is_own(table: DataFrame) -> Series:
    """Whether a map is on the layer that it was trained on, or has no training."""
    return (table.trained_layer.isna() | (table.trained_layer == table.layer)).astype(bool)
