"""The columns of a cell with which every table of cells begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankfall.design import Component
from rankfall.report.schema import CELL_COLUMNS

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell


def cell_columns(cell: Cell, record: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the values of CELL_COLUMNS for a cell; `record` is the store's record of it, None if it has not been computed."""
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
