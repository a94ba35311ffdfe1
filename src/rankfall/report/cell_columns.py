"""A cell as columns: what every table of cells begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankfall.design import Component
from rankfall.report.schema import CELL_COLUMNS

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell


def cell_columns(cell: Cell, record: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """CELL_COLUMNS of a cell; `record` is what the store says about it, None where it has not been computed."""
    record = record or {"status": "missing", "reason": "not computed yet"}
    architecture, training = cell.architecture, cell.training
    values: dict[str, Any] = {
        "key": cell.key,
        "task": cell.task.name,
        "architecture": architecture.name,
        "training": training.name,
        "seed": cell.seed,
        "status": record["status"],
        "reason": record.get("reason") or "",
        "task_component": str(cell.task.task),
        "device": record.get("device"),
        "engine": record.get("engine"),
        "stack": record.get("stack"),
        "host": record.get("host"),
        "processor": record.get("processor"),
        "torch": record.get("versions", {}).get("torch"),
    }
    for column in CELL_COLUMNS:
        if column.name not in values:
            value = getattr(architecture if hasattr(architecture, column.name) else training, column.name)
            values[column.name] = str(value) if isinstance(value, Component) else value
    return values
