"""Resources of the jobs of shards: priority, minutes and memory of the first attempt."""

import math
from collections import Counter
from typing import NamedTuple

from rankfall.run.plan import cost
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.jobs import PlannedJob

SECONDS = 4  # per cell, for a measure whose file declares no COST
SPARE = 1220  # megabytes added to the estimate of a job, because memory is a limit


class Needs(NamedTuple):
    """Priority and resources of a job."""

    priority: float
    minutes: int  # limit: three times the estimate plus 15 minutes, since a machine may be slow or shared
    megabytes: int


def needs(plan: Plan, job: PlannedJob) -> Needs:
    """Return priority and resources of a shard's job. Training runs first; long jobs run before short ones, so that none ends alone."""
    if job.kind == "measure":
        return _measure_needs(plan, *job.names)
    cells = plan.shard(*job.names)
    seconds = sum(cell.cost.seconds for cell in cells)
    return Needs(3 + _long(seconds), _minutes(seconds), _memory(plan, cells))


def _measure_needs(plan: Plan, name: str, task: str, shard: str) -> Needs:
    """Use the memory that the measure declares for a cell, else that of training."""
    cells, measure = plan.measured_cells(name, task, shard), plan.measure(name)
    seconds, own = len(cells) * measure.cost.get("seconds", SECONDS), measure.cost.get("megabytes")
    of_cell = own is not None and bool(cells)
    megabytes = cost.PROCESS + SPARE + math.ceil(own or 0) if of_cell else _memory(plan, plan.shard(task, shard))
    return Needs(1 + _long(seconds), _minutes(seconds), megabytes)


def _minutes(seconds: float) -> int:
    return 15 + math.ceil(3 * seconds / 60)


def _long(seconds: float) -> float:
    """Return the part of the priority that grows with duration. It is below 1, because the priorities of kinds are whole numbers."""
    return seconds / (seconds + 3600)


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
