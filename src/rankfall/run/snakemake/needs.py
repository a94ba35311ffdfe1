"""What the jobs of shards need: priority, minutes and memory of their first attempts."""

import math
from collections import Counter
from typing import NamedTuple

from rankfall.run.plan import cost
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.jobs import PlannedJob

SECONDS = 4  # of a cell, for a measure whose file says no COST
SPARE = 1220  # megabytes of a job beyond the estimate: it is a limit


class Needs(NamedTuple):
    """What a job needs of a machine, and how early it should run."""

    priority: float
    minutes: int  # a limit: three times the estimate and a quarter of an hour, since a machine may be slow or shared
    megabytes: int


def needs(plan: Plan, job: PlannedJob) -> Needs:
    """Return what the job of a shard needs. Everything waits for networks; and a long job that is left for the end runs alone."""
    if job.kind == "measure":
        return _measure_needs(plan, *job.names)
    cells = plan.shard(*job.names)
    seconds = sum(cell.cost.seconds for cell in cells)
    return Needs(3 + _long(seconds), _minutes(seconds), _memory(plan, cells))


def _measure_needs(plan: Plan, name: str, task: str, shard: str) -> Needs:
    """Memory: what the measure declares for a cell; otherwise as for training."""
    cells, measure = plan.measured_cells(name, task, shard), plan.measure(name)
    seconds, own = len(cells) * measure.cost.get("seconds", SECONDS), measure.cost.get("megabytes")
    of_cell = own is not None and bool(cells)
    megabytes = cost.PROCESS + SPARE + math.ceil(own or 0) if of_cell else _memory(plan, plan.shard(task, shard))
    return Needs(1 + _long(seconds), _minutes(seconds), megabytes)


def _minutes(seconds: float) -> int:
    return 15 + math.ceil(3 * seconds / 60)


def _long(seconds: float) -> float:
    """The part of a priority that a job has for its length: between 0 and 1, as priorities of kinds of jobs are whole numbers."""
    return seconds / (seconds + 3600)


def _memory(plan: Plan, cells: list[Cell]) -> int:
    """The memory of the group of cells that needs most; cells of a group are alike and share stacks."""
    members, most = Counter(cell.group for cell in cells), plan.config.compute.stack
    groups = {cell.group: cell for cell in cells}
    return max(stack_memory(cell, min(members[group], most)) for group, cell in groups.items())


def stack_memory(cell: Cell, members: int) -> int:
    """Megabytes of a job that trains so many members alike: the model's estimate and that of an empty job, or what was measured and a
    quarter more. A stack that is larger than any measured needs more than those did: the more of the two."""
    modelled = SPARE + cost.stack_megabytes(cell.task, cell.architecture, cell.training, members)
    measured = (cell.cost.megabytes or 0) * 5 // 4
    return measured if measured and members <= cell.cost.members else max(modelled, measured)
