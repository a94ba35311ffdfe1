"""The remaining time of a run: estimates of processor time, times how much longer finished jobs have taken here than estimated."""

from collections.abc import Mapping

from rankfall.run.plan.cost import JOBS, RANGE
from rankfall.run.screen.logs import Reached, clock
from rankfall.run.screen.state import RunState

TYPICAL = JOBS | {"train": 10.0, "measure": 10.0}  # of jobs without an estimate in the plan
OTHER = 5.0  # seconds of a job of any other rule
TRUST = 10.0  # estimated seconds of jobs whose times weigh as much as what is known without them


def seconds_left(state: RunState, reached: Mapping[str, Reached], now: float) -> float | None:
    """Return the seconds until the run ends, or None if nothing is known yet. `reached` is the progress of running jobs by Snakemake's
    number."""
    if not state.totals:
        return None
    scales = find_scales(state, now)
    running = []
    for number, job in state.running.items():
        elapsed = max(0.0, now - job.began)  # a clock may be set back
        found = reached.get(number)
        if found is not None and found.share > 0.02:  # the log itself tells the progress
            running.append(elapsed * (1 - min(found.share, 1.0)) / found.share)
        else:
            running.append(max(estimate(state, job.rule, job.output) * scales[job.rule] - elapsed, 1.0))
    seen = {job.output for job in [*state.running.values(), *state.finished]}
    waiting = []
    for rule, total in state.totals.items():
        left = total - state.done[rule] - sum(job.rule == rule for job in state.running.values())
        # Jobs with their own estimates that have not begun. If fewer jobs remain than that, the longest of them.
        own = [cost for output, (of, cost, _) in state.costs.items() if of == rule and output not in seen]
        costs = sorted(own, reverse=True)[: max(left, 0)]
        costs += [TYPICAL.get(rule, OTHER)] * (max(left, 0) - len(costs))
        waiting += [cost * scales[rule] for cost in costs]
    together = max(1, min(state.cores, len(running) + len(waiting)))
    return max([(sum(running) + sum(waiting)) / together, *running, *waiting], default=0.0)


def say_left(state: RunState, reached: Mapping[str, Reached], now: float) -> str:
    """Describe the remaining time as a range, since estimates are within a factor of about two. Return an empty text if nothing is known or
    left."""
    left = seconds_left(state, reached, now)
    if not left:
        return ""
    low, high = (clock(round_seconds(share * left)) for share in RANGE)
    return f"{low} to {high} left" if low != high else f"about {low} left"


def round_seconds(seconds: float) -> float:
    """Round to two digits at most, since more would suggest more precision than there is."""
    step = 1 if seconds < 10 else 5 if seconds < 60 else 30 if seconds < 600 else 60
    return step * round(seconds / step)


def estimate(state: RunState, rule: str, output: str) -> float:
    """Return the estimated seconds of one job."""
    return state.costs[output][1] if output in state.costs else TYPICAL.get(rule, OTHER)


def find_scales(state: RunState, now: float) -> dict[str, float]:
    """Return, by rule, the seconds that jobs take divided by their estimates. A rule without finished jobs has the scale of the whole run,
    which begins with that of the machine's load. A job that runs longer than estimated counts with the time that it has taken."""
    timed = [(job.rule, job.seconds or 0.0, estimate(state, job.rule, job.output)) for job in state.finished]
    late = [(job.rule, now - job.began, estimate(state, job.rule, job.output)) for job in state.running.values()]
    timed += [(rule, taken, expected) for rule, taken, expected in late if taken > expected]

    def weigh(some: list[tuple[str, float, float]], before: float) -> float:
        return (sum(taken for _, taken, _ in some) + TRUST * before) / (sum(one for _, _, one in some) + TRUST)

    whole = weigh(timed, state.slower)
    return {rule: weigh([one for one in timed if one[0] == rule], whole) for rule in state.totals}
