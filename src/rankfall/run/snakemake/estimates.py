"""Time and memory of jobs: resources that Snakemake and SLURM are asked for, and estimates for `rankfall plan` and `rankfall run`."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rankfall.run.plan import cost
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.cost import BEGIN, CELL, JOBS, RANGE, TRACE, measured_seconds
from rankfall.run.plan.engines import MACHINES
from rankfall.run.snakemake.jobs import PlannedJob

Estimate = tuple[str, float, int]  # rule, seconds of one core, cells
FINISHED = ("done", "diverged")  # a cell that failed is tried again
SECONDS = 4  # per cell, for a measure whose file declares no COST
SPARE = 1220  # megabytes added to the estimate of a job, because memory is a limit


class InStore:
    """Look up which cells and rows of a plan the store has. Only headers are read, at the first use."""

    def __init__(self, plan: Plan, results: Path | str) -> None:
        self.plan, self.root = plan, Path(results) / "store"
        self._rows: dict[str, frozenset[str]] = {}

    def find_left(self, job: PlannedJob) -> list[Cell]:
        """Return the cells of a shard's job whose results are not in the store."""
        if job.kind == "train":
            return [
                cell
                for cell in self.plan.shards[job.names[0], job.names[1]]
                if self.statuses.get(cell.key) not in FINISHED
            ]
        name, task, shard = job.names
        measured = self._find_measured(name)
        return [
            cell
            for cell in self.plan.measured_cells(name, task, shard)
            if (status := self.statuses.get(cell.key)) not in FINISHED
            or (status == "done" and self.plan.measure_key(name, cell) not in measured)
        ]

    @cached_property
    def statuses(self) -> dict[str, str]:
        """Return the status of each cell of the plan that the store has, by key."""
        if not self.root.is_dir():
            return {}
        from rankfall.run.store import Store

        cells = self.plan.cells
        found = Store(self.root).find_cells((cell.key for cell in cells), {cell.group for cell in cells})
        return {key: record.status for key, record in found.items()}

    def count_measured(self) -> dict[str, tuple[int, int]]:
        """Return measure -> number of cells whose rows the store has, and of all its cells."""
        counts = {}
        for name, measure in self.plan.measures.items():
            if measure.needs == "cells":
                cells = [cell for cell in self.plan.cells if cell.key in self.plan.selected[name]]
                measured = self._find_measured(name)
                counts[name] = sum(self.plan.measure_key(name, cell) in measured for cell in cells), len(cells)
        return counts

    def _find_measured(self, name: str) -> frozenset[str]:
        """Return the keys of a measure's rows in the store."""
        component = self.plan.measures[name].component.name
        if component not in self._rows:
            from rankfall.run.store import Store

            there = Store(self.root).find_covered(component) if self.root.is_dir() else ()
            self._rows[component] = frozenset(there)
        return self._rows[component]


def estimates(plan: Plan, jobs: Iterable[PlannedJob], store: InStore, scale: float = 1.0) -> dict[str, Estimate]:
    """Return the estimate of each job by its first file. Cells in the store cost nothing. `scale` multiplies training time."""
    found: dict[str, Estimate] = {}
    known: dict[tuple[float, int, int], float] = {}

    def look_up(said: float, cell: Cell) -> float:
        ident = said, id(cell.task), id(cell.architecture)
        if ident not in known:
            known[ident] = measured_seconds(said, cell.task, cell.architecture)
        return known[ident]

    for job in jobs:
        seconds, cells = JOBS[job.rule], list[Cell]()
        if job.rule in ("train", "measure"):
            cells = store.find_left(job)
        if job.rule == "train":
            traced = {
                cell.group: cell.architecture.depth
                for cell in cells
                if cell.engine in MACHINES and cell.training.epochs
            }
            seconds += scale * sum(cell.cost.seconds for cell in cells) + TRACE * sum(traced.values())
        elif job.rule == "measure":
            said = plan.measures[job.names[0]].cost.get("seconds")
            seconds += len(cells) * CELL if said is None else sum(look_up(said, cell) for cell in cells)
        elif job.rule == "measure_freely":
            seconds = plan.measures[job.names[0]].cost.get("seconds", seconds)
        found[job.files[0]] = (job.rule, seconds, len(cells))
    return found


def by_rule(found: dict[str, Estimate]) -> defaultdict[str, float]:
    """Return the seconds of one core for each rule."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for rule, one, _ in found.values():
        seconds[rule] += one
    return seconds


def between(found: dict[str, Estimate], cores: int, load: float = 0.0, workers: int = 1) -> tuple[float, float]:
    """Return the shortest and the longest expected duration of a run in seconds, from the call to the page.

    `load`: number of other processes on these cores. If they and the run need more than `cores`, each process gets an equal share.
    `workers`: processes of a job.
    """
    if not found:
        return 0.0, 0.0
    page = sum(seconds for rule, seconds, _ in found.values() if rule == "page")  # runs after all others
    others = [seconds for rule, seconds, _ in found.values() if rule != "page"]
    longest = max(others, default=0.0) / min(workers, cores)
    middle = slowdown(cores, min(cores, len(found) * workers), load) * (
        BEGIN + page + max(sum(others) / cores, longest)
    )
    return RANGE[0] * middle, RANGE[1] * middle


def slowdown(cores: int, processes: int, load: float) -> float:
    """Return the seconds by the clock of a second of processor time, if `load` other processes share the cores with these."""
    return max(1.0, (load + processes) / cores)


class Needs(NamedTuple):
    """Priority and resources of a job."""

    priority: float
    minutes: int  # limit: three times the estimate plus 15 minutes, since a machine may be slow or shared
    megabytes: int
    workers: int


def needs(plan: Plan, job: PlannedJob) -> Needs:
    """Return priority and resources of a shard's job. Training runs first; long jobs run before short ones, so that none ends alone. A
    measure needs the memory that it declares for a cell, else that of training."""
    cells, kind, own, compute = plan.shards[job.names[-2], job.names[-1]], 3, None, plan.config.compute
    seconds, members = sum(cell.cost.seconds for cell in cells), Counter(cell.group for cell in cells)
    workers = min(compute.workers, sum(-(-number // compute.stack) for number in members.values()))
    if job.kind == "measure":
        measured, declared, kind = plan.measured_cells(*job.names), plan.measures[job.names[0]].cost, 1
        seconds, own = len(measured) * declared.get("seconds", SECONDS), declared.get("megabytes") if measured else None
        workers = min(compute.workers, max(1, len(measured)))
    megabytes = _memory(plan, cells) if own is None else cost.PROCESS + SPARE + math.ceil(own)
    share = seconds / (seconds + 3600)  # below 1, since priorities of kinds are whole numbers
    return Needs(kind + share, 15 + math.ceil(3 * seconds / workers / 60), workers * megabytes, workers)


def _memory(plan: Plan, cells: list[Cell]) -> int:
    """Return the memory of the largest group. Cells of a group are alike and share stacks."""
    members, most = Counter(cell.group for cell in cells), plan.config.compute.stack
    groups = {cell.group: cell for cell in cells}
    return max(stack_memory(cell, min(members[group], most)) for group, cell in groups.items())


def stack_memory(cell: Cell, members: int) -> int:
    """Return the megabytes of a job that trains a stack of `members`: the measured memory plus a quarter, else the modelled memory. For a
    stack with more members than were measured, return the larger of the two."""
    modelled = SPARE + cost.stack_megabytes(cell.task, cell.architecture, cell.training, members)
    measured = (cell.cost.megabytes or 0) * 5 // 4
    return measured if measured and members <= cell.cost.members else max(modelled, measured)
