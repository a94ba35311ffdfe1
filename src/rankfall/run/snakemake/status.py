"""Compare the plan with the store: which jobs would run, and why?

A cell is fresh if its key is in the store, and stale if only its spec is, computed by other code. It is kept if the store lost it but no
job needs it, because all files that depend on it exist. Any other cell is new. The file digests recorded with each result show why a cell
is stale. The most similar unused result with the same labels shows why a cell is new.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.estimates import FINISHED, Estimate, InStore, estimates
from rankfall.run.snakemake.run_plan import RunPlan, describe_changed_code, list_reasons
from rankfall.run.store import CellRecord

STALE, NEW = "stale", "new"


@dataclass
class Line:
    """The cells of a task, architecture and training."""

    task: str
    architecture: str
    training: str
    cells: int = 0
    fresh: int = 0
    stale: int = 0
    new: int = 0
    kept: int = 0
    seconds: float = 0.0  # of cells that are not fresh


@dataclass
class Status:
    """The status of a whole plan."""

    lines: list[Line] = field(default_factory=list)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # (state, reason) -> cells
    jobs: int = 0  # training jobs that have cells to train
    shards: int = 0
    measures: dict[str, tuple[int, int]] = field(default_factory=dict)  # name -> (rows of cells in store, cells)
    scale: float = 1.0  # measured seconds over estimated ones
    measured: int = 0  # cells from which the scale is computed
    run: dict[str, Estimate] = field(default_factory=dict)  # first file of each job of a run -> estimate
    # jobs whose digests differ from those of the previous plan, and the reasons
    why: list[str] = field(default_factory=list)
    trained: dict[str, str | None] = field(default_factory=dict)  # key of a cell in the store -> engine that trained it

    @property
    def seconds(self) -> float:
        """Return the total seconds of one core."""
        return sum(line.seconds for line in self.lines)


def status(plan: Plan, run: RunPlan, measures: bool = False) -> Status:
    """Compare a plan with the store, of which only headers are read."""
    store = InStore(plan, run.results)
    records = sorted(store.store.records(), key=lambda record: str(record.record.get("time")))
    keys = {record.key for record in records if record.status in FINISHED}
    failed = {record.key: str(record.record.get("reason", "")) for record in records if record.key not in keys}
    specs: dict[str, CellRecord] = {str(record.record.get("spec")): record for record in records}
    unused = _select_unused_results(records, {cell.spec for cell in plan.cells})
    result = Status(shards=len(plan.shards))
    result.trained = {record.key: record.record.get("engine") for record in records if record.key in keys}
    jobs = run.find_missing()
    needed = {job.names[-2:] for job in jobs if job.rule in ("train", "measure") and store.find_left(job)}
    result.scale, result.measured = _scale(plan.cells, records)
    result.run, result.why = estimates(plan, jobs, store, result.scale), run.lines()
    lines: dict[tuple[str, str, str], Line] = {}
    busy = set()
    for cell in plan.cells:
        line = lines.setdefault(cell.labels, Line(*cell.labels))
        line.cells += 1
        if cell.key in keys:
            line.fresh += 1
            continue
        if cell.key not in failed and (cell.task.name, cell.shard) not in needed:
            line.kept += 1
            continue
        busy.add((cell.task.name, cell.shard))
        line.seconds += result.scale * cell.cost.seconds
        if cell.key in failed:
            state, reason = STALE, f"failed before: {failed[cell.key]}"
        elif cell.spec in specs:
            state, reason = STALE, describe_changed_code(specs[cell.spec].record.get("code", {}), cell.code)
        else:
            state, reason = NEW, describe_changed_spec(cell, unused.get((*cell.labels, cell.seed), []))
        line.stale += state == STALE
        line.new += state == NEW
        result.reasons[state, reason] += 1
    result.lines, result.jobs = list(lines.values()), len(busy)
    if measures:
        result.measures = store.count_measured()
    return result


def describe_changed_spec(cell: Cell, candidates: Iterable[Mapping[str, Any]]) -> str:
    """Return the list of fields in which a cell differs from the most similar candidate, as text."""
    fields, differences = dict(flat(cell.content)), []
    for other in map(dict, map(flat, candidates)):
        names = sorted(name for name in fields.keys() | other.keys() if fields.get(name) != other.get(name))
        differences.append([f"{name}: {other.get(name)!r} -> {fields.get(name)!r}" for name in names])
    return list_reasons(min(differences, key=len, default=[])) or "not computed before"


def flat(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Flatten nested mappings to items such as ("architecture.depth", 6) and ("task.options.length", 8)."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from flat(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", item


def _select_unused_results(
    records: Iterable[CellRecord], specs: set[str]
) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Return (labels, seed) -> results that no cell of the plan uses."""
    unused: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        stored = record.record
        if "labels" in stored and "content" in stored and stored.get("spec") not in specs:
            unused.setdefault((*stored["labels"], stored.get("seed")), []).append(stored["content"])
    return unused


def _scale(cells: Iterable[Cell], records: Iterable[CellRecord]) -> tuple[float, int]:
    """Return the median ratio of measured to estimated seconds, and the number of trained cells of the plan behind it."""
    seconds = {str(r.record.get("spec")): r.record["seconds"] for r in records if r.record.get("seconds")}
    ratios = [seconds[cell.spec] / cell.cost.seconds for cell in cells if cell.training.epochs and cell.spec in seconds]
    return (median(ratios), len(ratios)) if ratios else (1.0, 0)
