"""Measured costs of cells: a file that `rankfall plan --calibrate` writes and `compute.costs` names.

Shards must not depend on the state of the disk, or jobs would compute other shards than were planned. So measured seconds and megabytes
reach the plan only through this file, which changes only on request. A measured group (cells that can be stacked, and so cost the same) has
its measured costs. Any other group has its modelled costs times the median ratio of measured to modelled costs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from rankfall.design import Architecture, Task, Training
from rankfall.run.config.problems import problem, translate
from rankfall.run.plan import cost
from rankfall.run.plan.cost import Cost

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import CellRecord

KEY = "compute.costs"
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class History(BaseModel):
    """Measured costs by group, with modelled costs for all other groups."""

    scale: Positive  # median of measured over modelled costs
    groups: dict[str, Cost]

    def cost_of(self, group: str, task: Task, architecture: Architecture, training: Training, engine: str) -> Cost:
        """Return the cost of a cell of a group."""
        return self.groups.get(group) or Cost(self.scale * cost.cell_seconds(task, architecture, training, engine))


def read_history(path: str | None) -> History:
    """Read the file of measured costs. Without a path, return an empty history."""
    if path is None:
        return History(scale=1.0, groups={})
    try:
        return History.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        hint = f"`rankfall plan --calibrate {path}` writes it"
        raise problem(KEY, f"cannot read {path}: {error.strerror}", hint=hint) from error
    except ValidationError as error:
        hint = f"write it again: `rankfall plan --calibrate {path}`"
        raise problem(KEY, f"{path} is not a file of measured costs: {translate(error)}", hint=hint) from error


def measure_history(cells: "Iterable[Cell]", records: "Iterable[CellRecord]") -> dict[str, Any]:
    """Return the content of a file of measured costs, from the store's records of a plan's cells. Results of older code count too."""
    known = {cell.spec: cell for cell in cells}
    measured: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        cell = known.get(str(record.record.get("spec")))
        if cell is not None and record.record.get("seconds") and record.record.get("status") != "failed":
            measured.setdefault(cell.group, []).append(record.record)
    groups, ratios = {}, []
    firsts = {cell.group: cell for cell in sorted(known.values(), key=lambda cell: -cell.seed)}
    for group, stored in sorted(measured.items()):
        cell, typical = firsts[group], median(float(about["seconds"]) for about in stored)
        groups[group] = {
            "what": " / ".join(cell.labels) + f", depth {cell.architecture.depth}",
            "cells": len(stored),
            "seconds": float(f"{typical:.3g}"),
            "megabytes": max((int(about["megabytes"]) for about in stored if about.get("megabytes")), default=None),
            "members": max(Counter(about.get("stack", about["spec"]) for about in stored).values()),
        }
        if cell.training.epochs:
            ratios.append(typical / cost.cell_seconds(cell.task, cell.architecture, cell.training, cell.engine))
    return {"scale": float(f"{median(ratios) if ratios else 1.0:.3g}"), "groups": groups}
