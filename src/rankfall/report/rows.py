"""Rows of tables, from cells, data sets and the records of the store.

This code is part of the keys of the files with these rows: after an edit, files are written again from the store, and nothing is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankfall.design import Component
from rankfall.report.processors import join_processors
from rankfall.report.schema import CELL_COLUMNS


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
        "torch": record.get("versions", {}).get("torch"),
        **{name: record.get(name) for name in ("device", "engine", "stack", "host", "processor")},
    }
    for column in CELL_COLUMNS:
        if column.name not in values:
            value = getattr(architecture if hasattr(architecture, column.name) else training, column.name)
            values[column.name] = str(value) if isinstance(value, Component) else value
    return values


if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.tasks._dataset import Dataset

Row = dict[str, Any]
Course = Iterable[tuple[int, str, str, float]]  # (epochs completed, split, metric, mean)
OF_RECORD = ("steps", "chance", "seconds", "step_ms", "together", "threads")  # columns of the table of cells
TESTED = "test"  # the split for which the accuracy of guessing is computed


def dataset_rows(cell: Cell, dataset: Dataset) -> list[Row]:
    """Return a row for each split of a data set."""
    return [
        {
            "task": cell.task.name,
            "seed": cell.data_seed,
            "data_key": cell.data_key,
            "size_in": dataset.size_in,
            "size_out": dataset.size_out,
            "split": name,
            "samples": len(split.inputs),
            "length": split.inputs.shape[1],
            "chance": dataset.chance if name == TESTED else None,
            "seen": dataset.count_seen() / len(split.inputs) if name == TESTED else None,
        }
        for name, split in dataset.splits.items()
    ]


def cell_row(cell: Cell, record: Mapping[str, Any], attainable: tuple[float | None, str]) -> Row:
    """Return the row of a cell's final results. `attainable`: the accuracy that its mask allows, and the reason if it is unknown."""
    row = cell_columns(cell, record) | {name: record.get(name) for name in OF_RECORD}
    row |= dict(zip(("attainable", "attainable_reason"), attainable))
    if "final" not in record:  # the cell failed
        return row
    ends = {
        f"{split}_{metric}": record["final"].get(split, {}).get(metric, math.nan)
        for split in ("train", TESTED)
        for metric in ("loss", "accuracy")
    }
    return row | ends


def epoch_rows(cell: Cell, record: Mapping[str, Any], course: Course) -> list[Row]:
    """Return the rows by epoch of a cell's training. Splits that are only evaluated at the end are listed at the last epoch."""
    points = list(course)
    seen, last = {split for _, split, _, _ in points}, max((epoch for epoch, _, _, _ in points), default=0)
    for split, metrics in record.get("final", {}).items():
        if split not in seen:
            points += [(last, split, metric, value) for metric, value in metrics.items()]
    columns, names = cell_columns(cell, record), ("epoch", "split", "metric", "value")
    return [columns | dict(zip(names, values)) for values in points]


def measured_rows(cell: Cell, record: Mapping[str, Any], rows: Sequence[Row] | None) -> list[Row]:
    """Return the measured rows of a cell; a cell that is not done has one row with the reason."""
    is_measured = rows is not None
    assert is_measured == (record["status"] == "done"), (
        f"cell {cell.key} is {record['status']}, measured: {is_measured}"
    )
    columns = cell_columns(cell, record)
    return [
        columns | row | {"processor": join_processors(columns["processor"], row.get("processor"))}
        for row in ([{}] if rows is None else rows)
    ]
