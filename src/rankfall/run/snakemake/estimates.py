"""Estimate time and memory of jobs, as requests to Snakemake and SLURM, and for `rankfall plan` and `rankfall run`."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rankfall.run.plan import cost
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.cost import BEGIN, CELL, JOBS, RANGE, TRACE, measured_seconds
from rankfall.run.plan.engines import MACHINES
from rankfall.run.snakemake.jobs import PlannedJob
from rankfall.run.store import Store

Estimate = tuple[str, float, int]  # rule, seconds of one core, cells
FINISHED = ("done", "diverged")  # endings of cells that are not trained again; a failed cell is
SECONDS = 4  # seconds per cell of a measure whose file declares no COST
SPARE = 1220  # megabytes added to the estimate of a job, since SLURM kills a job that needs more


class InStore:
    """A view of the cells and rows of a plan in the store. It reads only headers, at the first use."""

    def __init__(self, plan: Plan, results: Path | str) -> None:
        self.plan, self.store = plan, Store(Path(results) / "store")
        self._rows: dict[str, Collection[str]] = {}

    def find_left(self, job: PlannedJob) -> list[Cell]:
        """Return the cells of a shard's job whose results are not in the store."""
        *measures, task, shard = job.names
        cells = self.plan.measured_cells(measures[0], task, shard) if measures else self.plan.shards[task, shard]
        left = [cell for cell in cells if self.statuses.get(cell.key) not in FINISHED]
        if not measures:
            return left
        done = (cell for cell in cells if self.statuses.get(cell.key) == "done")
        return left + [cell for cell in done if not self._is_measured(measures[0], cell)]

    @cached_property
    def statuses(self) -> dict[str, str]:
        """Return key -> status of the plan's cells in the store."""
        cells = self.plan.cells
        records = self.store.find_cells((cell.key for cell in cells), {cell.group for cell in cells})
        return {key: record.status for key, record in records.items()}

    def count_measured(self) -> dict[str, tuple[int, int]]:
        """Return measure -> number of its cells with rows in the store, and number of all its cells."""
        counts = {}
        for name, measure in self.plan.measures.items():
            if measure.needs == "cells":
                cells = [cell for cell in self.plan.cells if cell.key in self.plan.selected[name]]
                counts[name] = sum(self._is_measured(name, cell) for cell in cells), len(cells)
        return counts

    def _is_measured(self, name: str, cell: Cell) -> bool:
        """Return whether the store has the rows of a measure on a cell."""
        component = self.plan.measures[name].component.name
        if component not in self._rows:
            self._rows[component] = self.store.find_covered(component)
        return self.plan.measure_key(name, cell) in self._rows[component]


def estimates(plan: Plan, jobs: Iterable[PlannedJob], store: InStore, scale: float = 1.0) -> dict[str, Estimate]:
    """Return first file -> estimate of each job. Cells in the store cost nothing. `scale` multiplies training time."""
    by_file: dict[str, Estimate] = {}
    known: dict[tuple[float, int, int], float] = {}

    def look_up(declared: float, cell: Cell) -> float:
        ident = declared, id(cell.task), id(cell.architecture)
        if ident not in known:
            known[ident] = measured_seconds(declared, cell.task, cell.architecture)
        return known[ident]

    for job in jobs:
        seconds, cells = JOBS[job.rule], list[Cell]()
        if job.rule in ("train", "measure"):
            cells = store.find_left(job)
        if job.rule == "train":
            machined = (cell for cell in cells if cell.engine in MACHINES)
            traced = {cell.group: cell.architecture.depth for cell in machined}
            seconds += scale * sum(cell.cost.seconds for cell in cells) + TRACE * sum(traced.values())
        elif job.rule == "measure":
            declared = plan.measures[job.names[0]].cost.get("seconds")
            seconds += len(cells) * CELL if declared is None else sum(look_up(declared, cell) for cell in cells)
        elif job.rule == "measure_freely":
            seconds = plan.measures[job.names[0]].cost.get("seconds", seconds)
        by_file[job.files[0]] = (job.rule, seconds, len(cells))
    return by_file


def by_rule(jobs: dict[str, Estimate]) -> defaultdict[str, float]:
    """Return rule -> seconds of one core."""
    total: defaultdict[str, float] = defaultdict(float)
    for rule, seconds, _ in jobs.values():
        total[rule] += seconds
    return total


def between(jobs: dict[str, Estimate], cores: int, load: float = 0.0, workers: int = 1) -> tuple[float, float]:
    """Return the shortest and the longest expected duration of a run in seconds, from the call to the page.

    `load` is the number of other processes on these cores. If they and the run need more than `cores`, each process gets an equal share.
    `workers` is the number of processes of a job.
    """
    if not jobs:
        return 0.0, 0.0
    page = sum(seconds for rule, seconds, _ in jobs.values() if rule == "page")  # its job runs after all others
    others = [seconds for rule, seconds, _ in jobs.values() if rule != "page"]
    longest = max(others, default=0.0) / min(workers, cores)
    middle = slowdown(cores, min(cores, len(jobs) * workers), load) * (BEGIN + page + max(sum(others) / cores, longest))
    return RANGE[0] * middle, RANGE[1] * middle


def slowdown(cores: int, processes: int, load: float) -> float:
    """Return the seconds by the clock for a second of processor time, if `load` other processes share the cores with these."""
    return max(1.0, (load + processes) / cores)


class Needs(NamedTuple):
    """Priority and resources of a job."""

    priority: float
    minutes: int  # limit: three times the estimate plus 15 minutes, since a machine may be slow or shared
    megabytes: int
    workers: int


def needs(plan: Plan, job: PlannedJob) -> Needs:
    """Return priority and resources of a shard's job.

    Training runs first. Long jobs run before short ones, so that none runs alone at the end. A measure needs the memory that it declares
    for a cell, else that of training."""
    *_, task, shard = job.names
    compute, cells, priority, megabytes_declared = plan.config.compute, plan.shards[task, shard], 3, None
    seconds, members = sum(cell.cost.seconds for cell in cells), Counter(cell.group for cell in cells)
    workers = min(compute.workers, sum(-(-number // compute.stack) for number in members.values()))
    if job.kind == "measure":
        measured, declared, priority = plan.measured_cells(*job.names), plan.measures[job.names[0]].cost, 1
        seconds = len(measured) * declared.get("seconds", SECONDS)
        megabytes_declared = declared.get("megabytes") if measured else None
        workers = min(compute.workers, max(1, len(measured)))
    megabytes = (
        _memory(plan, cells) if megabytes_declared is None else cost.PROCESS + SPARE + math.ceil(megabytes_declared)
    )
    share = seconds / (seconds + 3600)  # below 1, since the priorities of rules are whole numbers
    return Needs(priority + share, 15 + math.ceil(3 * seconds / workers / 60), workers * megabytes, workers)


def _memory(plan: Plan, cells: list[Cell]) -> int:
    """Return the memory of the largest stack, in megabytes. Cells of a group cost the same and share stacks."""
    members, most = Counter(cell.group for cell in cells), plan.config.compute.stack
    groups = {cell.group: cell for cell in cells}
    return max(stack_memory(cell, min(members[group], most)) for group, cell in groups.items())


def stack_memory(cell: Cell, members: int) -> int:
    """Return the megabytes of a job that trains a stack of `members`: the measured memory plus a quarter, else the modelled memory.

    For a stack with more members than the measured ones, return the larger of the two."""
    modelled = SPARE + cost.stack_megabytes(cell.task, cell.architecture, cell.training, members)
    measured = (cell.cost.megabytes or 0) * 5 // 4
    return measured if measured and members <= cell.cost.members else max(modelled, measured)
