"""Estimate the remaining time of a run: planned seconds, times the ratio of measured to planned seconds of finished jobs."""

from collections.abc import Mapping

from rankfall.run.plan.cost import JOBS, RANGE
from rankfall.run.screen.logs import Reached, clock
from rankfall.run.screen.state import RunState

TYPICAL = JOBS | {"train": 10.0, "measure": 10.0}  # rule -> seconds of a job without an estimate in the plan
OTHER = 5.0  # seconds of a job of any other rule
TRUST = 10.0  # planned seconds of finished jobs at which their ratio weighs as much as the ratio assumed before


def seconds_left(state: RunState, reached: Mapping[str, Reached], now: float) -> float | None:
    """Return the seconds until the run ends, or None if nothing is known yet.

    `reached` is the progress of running jobs by Snakemake's number."""
    if not state.totals:
        return None
    scales = find_scales(state, now)
    running = []
    for number, job in state.running.items():
        elapsed = max(0.0, now - job.began)  # a clock may be set back
        progress = reached.get(number)
        if progress is not None and progress.share > 0.02:  # enough to extrapolate from the log
            running.append(elapsed * (1 - min(progress.share, 1.0)) / progress.share)
        else:
            running.append(max(estimate(state, job.rule, job.output) * scales[job.rule] - elapsed, 1.0))
    seen = {job.output for job in [*state.running.values(), *state.finished]}
    waiting = []
    for rule, total in state.totals.items():
        left = total - state.done[rule] - sum(job.rule == rule for job in state.running.values())
        # Jobs with an estimate that have not begun; the longest of them if fewer jobs remain.
        planned = [cost for output, (name, cost, _) in state.costs.items() if name == rule and output not in seen]
        costs = sorted(planned, reverse=True)[: max(left, 0)]
        costs += [TYPICAL.get(rule, OTHER)] * (max(left, 0) - len(costs))
        waiting += [cost * scales[rule] for cost in costs]
    together = max(1, min(state.cores, len(running) + len(waiting)))
    return max([(sum(running) + sum(waiting)) / together, *running, *waiting], default=0.0)


def say_left(state: RunState, reached: Mapping[str, Reached], now: float) -> str:
    """Describe the remaining time as a range, since estimates are right within a factor of about two.

    Return an empty text if nothing is known, or if nothing remains."""
    left = seconds_left(state, reached, now)
    if not left:
        return ""
    low, high = (clock(round_seconds(share * left)) for share in RANGE)
    return f"{low} to {high} left" if low != high else f"about {low} left"


def round_seconds(seconds: float) -> float:
    """Round to at most two digits, since more would suggest a precision that the estimate lacks."""
    step = 1 if seconds < 10 else 5 if seconds < 60 else 30 if seconds < 600 else 60
    return step * round(seconds / step)


def estimate(state: RunState, rule: str, output: str) -> float:
    """Return the estimated seconds of a job."""
    return state.costs[output][1] if output in state.costs else TYPICAL.get(rule, OTHER)


def find_scales(state: RunState, now: float) -> dict[str, float]:
    """Return rule -> ratio of measured to estimated seconds.

    A rule without finished jobs has the ratio of the whole run, which starts from the machine's load. A running job that exceeds its
    estimate counts with its time so far."""
    timed = [(job.rule, job.seconds or 0.0, estimate(state, job.rule, job.output)) for job in state.finished]
    late = [(job.rule, now - job.began, estimate(state, job.rule, job.output)) for job in state.running.values()]
    timed += [(rule, taken, expected) for rule, taken, expected in late if taken > expected]

    def weigh(jobs: list[tuple[str, float, float]], before: float) -> float:
        taken = sum(seconds for _, seconds, _ in jobs)
        expected = sum(planned for _, _, planned in jobs)
        return (taken + TRUST * before) / (expected + TRUST)

    whole = weigh(timed, state.slower)
    return {rule: weigh([job for job in timed if job[0] == rule], whole) for rule in state.totals}
