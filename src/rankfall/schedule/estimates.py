"""What the jobs of a run are estimated to take, for the time left that `rankfall run` shows."""

from rankfall.plan.build import Plan
from rankfall.schedule.outputs import Outputs
from rankfall.schedule.standing import Standing

START = 3.0  # seconds of a job before its first network: interpreter, torch, the plan
CELL = 1.0  # of a cell, for a measure whose file says no COST


def estimates(plan: Plan, standing: Standing, outputs: Outputs) -> dict[str, tuple[str, float, int]]:
    """First file that a job makes -> its rule, seconds, and cells; of the jobs that have something to compute."""
    found = {}
    for job in sorted(standing.computing):
        if job.measure:
            cells, measure = plan.measured_cells(job.measure, *job.place), plan.measure(job.measure)
            seconds, rule = len(cells) * measure.cost.get("seconds", CELL), "measure"
        else:
            cells, rule = plan.shard(*job.place), "train"
            seconds = sum(cell.cost.seconds for cell in cells)
        found[outputs.of(job)[0]] = (rule, START + seconds, len(cells))
    return found
