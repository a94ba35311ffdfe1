"""Write and read the plan that jobs read instead of planning, in a folder named by its digest.

    results/plan/0123456789abcdef01234567/
        config.json                 the whole configuration
        jobs.json                   the jobs: inputs, outputs and resources of each (`run/snakemake/run_plan.py`)
        plan.pickle                 the plan without its cells
        shards/TASK/SHARD.pickle    the cells of a shard, and which of them each measure measures
        data/TASK.pickle            one cell for each data set of a task

If a file is missing or damaged, a job plans the whole grid (`commands/_planned.py`), which takes longer and changes no result.
"""

import json
import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankfall.disk import write
from rankfall.errors import RankfallError
from rankfall.report.quantities import set_user_quantities
from rankfall.run.objects import find_objects
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell, alike

FOLDER, CONFIG, JOBS, WITHOUT_CELLS = "plan", "config.json", "jobs.json", "plan.pickle"
OWN = ("seed", "key", "spec", "data_key", "data_seed", "shard")  # fields in which cells that are alike differ


class DamagedPlan(RankfallError):
    """A file of a written plan is missing or damaged."""


def shard_file(task: str, shard: str) -> str:
    """Return the file of a shard's cells, within the plan's folder."""
    return f"shards/{task}/{shard}.pickle"


def data_file(task: str) -> str:
    """Return the file with a cell for each data set of a task, within the plan's folder."""
    return f"data/{task}.pickle"


def write_parts(folder: Path, plan: Plan) -> None:
    """Write the plan without its cells, the cells of each shard, and a cell for each data set of each task."""
    write_once(folder / WITHOUT_CELLS, pickle.dumps(replace(plan, cells=[], selected={}, left_out={})))
    datasets: dict[str, dict[str, Cell]] = {}
    for (task, shard), cells in plan.shards.items():
        write_once(folder / shard_file(task, shard), pack_cells(plan, cells))
    for cell in plan.cells:
        datasets.setdefault(cell.task.name, {})[cell.data_key] = cell
    for task, by_key in datasets.items():
        write_once(folder / data_file(task), pack_cells(plan, list(by_key.values())))


def pack_cells(plan: Plan, cells: Sequence[Cell]) -> bytes:
    """Return cells as bytes. Common fields of alike cells are written once, since there may be a million cells."""
    rows = [
        (series.cells[0], [tuple(getattr(cell, name) for name in OWN) for cell in series.cells])
        for series in alike(cells)
    ]
    measured = {
        name: [number for number, cell in enumerate(cells) if cell.key in keys] for name, keys in plan.selected.items()
    }
    return pickle.dumps((rows, measured))


def read_plan(folder: Path, *files: str) -> Plan:
    """Return a written plan with the cells of these files."""
    if objects := find_objects(folder.parents[1]):
        for file in (WITHOUT_CELLS, *files):
            if not (folder / file).exists():
                objects.fetch(folder / file)
    plan: Plan = _unpickle(folder / WITHOUT_CELLS)
    set_user_quantities(plan.modules)
    cells: list[Cell] = []
    selected: dict[str, frozenset[str]] = dict.fromkeys(plan.measures, frozenset())
    for file in files:
        rows, measured = _unpickle(folder / file)
        file_cells = [replace(first, **dict(zip(OWN, values))) for first, different in rows for values in different]
        selected |= {
            name: selected[name].union(file_cells[number].key for number in numbers)
            for name, numbers in measured.items()
        }
        cells += file_cells
    return replace(plan, cells=cells, selected=selected)


def read_jobs(folder: Path) -> dict[str, Any] | None:
    """Return the content of jobs.json, or None if it is missing, damaged or of another version."""
    try:
        content = json.loads((folder / JOBS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if "code_files" in content and "engines" in content else None


def _unpickle(path: Path) -> Any:
    """Read a file that this user or root owns: in a shared folder, unpickling another user's file would run that user's code."""
    try:
        if path.stat().st_uid not in (os.getuid(), 0):
            raise PermissionError("another user wrote it")
        return pickle.loads(path.read_bytes())
    except Exception as error:  # damaged bytes may raise any exception
        raise DamagedPlan(f"{path} cannot be read: {error}") from error


def write_once(path: Path, content: bytes) -> None:
    """Write a file unless it already has this content. Another process may be reading it."""
    try:
        if path.read_bytes() == content:
            return
    except OSError:
        pass
    write(path, content)
