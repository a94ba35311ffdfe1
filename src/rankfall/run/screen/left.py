"""The time that a run still takes, by the plan's estimates; what finished jobs have taken says how this machine compares with them."""

from collections.abc import Mapping

from rankfall.run.plan.cost import JOBS, RANGE
from rankfall.run.screen.logs import Reached
from rankfall.run.screen.state import RunState
from rankfall.run.screen.words import clock

TYPICAL = JOBS | {"train": 10.0, "measure": 10.0}  # of jobs of which the plan said nothing
OTHER = 5.0  # seconds of a job of any other rule
TRUST = 10.0  # seconds of a rule's finished jobs that count as much as the estimate


def seconds_left(state: RunState, reached: Mapping[str, Reached], now: float) -> float | None:
    """Seconds until the run ends; None before anything is known. `reached`: how far running jobs are, by Snakemake's number."""
    if not state.totals:
        return None
    scales = {rule: scale(state, rule) for rule in state.totals}
    running = []
    for number, job in state.running.items():
        elapsed = max(0.0, now - job.began)  # a clock may be set back
        found = reached.get(number)
        if found is not None and found.share > 0.02:  # it says itself how far it is
            running.append(elapsed * (1 - min(found.share, 1.0)) / found.share)
        else:
            running.append(max(estimate(state, job.rule, job.output) * scales[job.rule] - elapsed, 1.0))
    seen = {job.output for job in [*state.running.values(), *state.finished]}
    waiting = []
    for rule, total in state.totals.items():
        left = total - state.done[rule] - sum(job.rule == rule for job in state.running.values())
        # Of jobs with an estimate of their own those that have not been seen; the first of them, if fewer are to run.
        own = [cost for output, (of, cost, _) in state.costs.items() if of == rule and output not in seen]
        costs = sorted(own, reverse=True)[: max(left, 0)]
        costs += [TYPICAL.get(rule, OTHER)] * (max(left, 0) - len(costs))
        waiting += [cost * scales[rule] for cost in costs]
    together = max(1, min(state.cores, len(running) + len(waiting)))
    return max([(sum(running) + sum(waiting)) / together, *running, *waiting], default=0.0)


def say_left(state: RunState, reached: Mapping[str, Reached], now: float) -> str:
    """In words: a range, since estimates are within a factor of about two, or nothing where nothing is known or left."""
    left = seconds_left(state, reached, now)
    if not left:
        return ""
    low, high = (clock(round_seconds(share * left)) for share in RANGE)
    return f"{low} to {high} left" if low != high else f"about {low} left"


def round_seconds(seconds: float) -> float:
    """Round to two digits at most: more would claim more than is known."""
    step = 1 if seconds < 10 else 5 if seconds < 60 else 30 if seconds < 600 else 60
    return step * round(seconds / step)


def estimate(state: RunState, rule: str, output: str) -> float:
    """How many seconds one job takes."""
    return state.costs[output][1] if output in state.costs else TYPICAL.get(rule, OTHER)


def scale(state: RunState, rule: str) -> float:
    """Seconds that the finished jobs of a rule took, over those that were estimated."""
    jobs = [job for job in state.finished if job.rule == rule and job.seconds is not None]
    taken = sum(job.seconds or 0.0 for job in jobs)
    expected = sum(estimate(state, rule, job.output) for job in jobs)
    return (taken + TRUST) / (expected + TRUST)
