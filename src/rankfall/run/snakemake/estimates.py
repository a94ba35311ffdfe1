"""What the jobs of a run are estimated to take: for the whole run in `rankfall plan`, and for the time left that `rankfall run` shows."""

from collections import defaultdict
from collections.abc import Iterable

from rankfall.run.plan.build import CELL_TABLES, Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.cost import BEGIN, CELL, JOBS, RANGE, TRACE, measured_seconds
from rankfall.run.plan.engines import MACHINES
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.up_to_date import OutputStates

Estimate = tuple[str, float, int]  # rule, seconds of one core, cells


def estimates(plan: Plan, states: OutputStates, outputs: Outputs, scale: float = 1.0) -> dict[str, Estimate]:
    """First file that a job makes -> its estimate; of the jobs that have something to make. `scale`: of the time of training."""
    found: dict[str, Estimate] = {}
    known: dict[tuple[float, int, int], float] = {}

    def look(said: float, cell: Cell) -> float:
        ident = said, id(cell.task), id(cell.architecture)
        if ident not in known:
            known[ident] = measured_seconds(said, cell.task, cell.architecture)
        return known[ident]

    for job in sorted(states.computing):
        cells = states.left[job]  # what the store has is not computed again
        if job.measure:
            measure = plan.measure(job.measure)
            said, rule = measure.cost.get("seconds"), "measure"
            seconds = len(cells) * CELL if said is None else sum(look(said, cell) for cell in cells)
        else:
            rule = "train"
            traced = {
                cell.group: cell.architecture.depth
                for cell in cells
                if cell.engine in MACHINES and cell.training.epochs
            }
            seconds = scale * sum(cell.cost.seconds for cell in cells) + TRACE * sum(traced.values())
        found[outputs.of(job)[0]] = (rule, JOBS[rule] + seconds, len(cells))
    wanted = states.stale.keys() | set(states.missing)
    free = [measure for measure in plan.measures.values() if measure.needs != "cells"]
    costs = {outputs.freely(one.name): one.cost.get("seconds", JOBS["measure_freely"]) for one in free}
    tasks = {task for task, _ in plan.shards}
    others: list[tuple[str, Iterable[str]]] = [
        ("data", map(outputs.data, tasks)),
        ("measure_freely", costs),
        ("table", map(outputs.table, {*CELL_TABLES, *plan.tables})),
        ("figure", map(outputs.picture, plan.figures)),
        ("page", [outputs.page]),
    ]
    for rule, paths in others:
        found |= {path: (rule, costs.get(path, JOBS[rule]), 0) for path in sorted(set(paths) & wanted)}
    return found


def by_rule(found: dict[str, Estimate]) -> defaultdict[str, float]:
    """Seconds of one core."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for rule, one, _ in found.values():
        seconds[rule] += one
    return seconds


def between(found: dict[str, Estimate], cores: int, load: float = 0.0) -> tuple[float, float]:
    """Return the least and the most that a run is expected to take by the clock, from the call to the page.

    `load`: processes of others that compute on these cores. Where they and the run are more than the cores, each has its share.
    """
    if not found:
        return 0.0, 0.0
    page = sum(seconds for rule, seconds, _ in found.values() if rule == "page")  # it waits for all others
    others = [seconds for rule, seconds, _ in found.values() if rule != "page"]
    slower = max(1.0, (load + min(cores, len(found))) / cores)
    middle = slower * (BEGIN + page + max(sum(others) / cores, *others, 0.0))
    return RANGE[0] * middle, RANGE[1] * middle
