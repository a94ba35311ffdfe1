"""The display of a run without a terminal: a line when it begins, and a line for each job that ends."""

from collections.abc import Mapping

from rankfall.run.screen.left import say_left
from rankfall.run.screen.logs import Reached
from rankfall.run.screen.state import STAGES, Job, RunState
from rankfall.run.screen.words import clock, count


def describe_start(state: RunState, title: str) -> str:
    """Return the first line of a run, which lists its jobs."""
    parts = [f"{STAGES.get(rule, rule)} {state.totals[rule]}" for rule in state.rules]
    return f"==> {title}: {count(state.total, 'job')} ({', '.join(parts)})"


def say_ended(state: RunState, job: Job, reached: Mapping[str, Reached], now: float) -> str:
    """Return the line of a job that is done or has failed."""
    left = say_left(state, reached, now)
    about = f", {left}" if left and job.place < state.total else ""
    when = f"{clock(now - state.began)} so far{about}"
    if job.error:
        return f"[{job.place}/{state.total}] failed: {job.name}: {job.error}; log: {job.log}; {when}"
    return f"[{job.place}/{state.total}] {job.name}: {clock(job.seconds or 0.0)}; {when}"
