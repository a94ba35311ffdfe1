"""Make rows of the table of cells."""

import math
from typing import Any

from rankfall.report.schema import CELL_COLUMNS
from rankfall.report.settings import USUAL

USED = {"float": 0.0, "int": 1, "text": "none", "bool": True}
DESIGN = {**USUAL, "norm_placement": "post", "block": "attention", "depth": 6}
DONE = {
    "status": "done", "reason": "", "steps": 0, "seconds": 0.0, "step_ms": math.nan, "threads": 1, "together": 2, "attainable_reason": "",
    "train_loss": 0.0, "train_accuracy": 0.0, "test_loss": 0.0,
}  # fmt: skip


def cell(key: str, architecture: str, seed: int, **fields: Any) -> dict[str, Any]:
    """Return the row of a network that is not trained; what is not given is as in every other row."""
    row = {column.name: USED[column.type] for column in CELL_COLUMNS} | DESIGN | DONE
    row |= {"key": key, "architecture": architecture, "seed": seed, "task": "sorting", "training": "init", "epochs": 0}
    return row | {"chance": 0.25, "attainable": 0.85, "test_accuracy": 0.25} | fields
