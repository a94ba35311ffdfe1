"""Draw a run: on a terminal a view that changes in place, elsewhere a line when the run begins and a line for each job that ends."""

from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rankfall.run.screen.left import say_left
from rankfall.run.screen.logs import Reached, clock, count
from rankfall.run.screen.state import STAGES, Job, RunState

JOBS = 6  # running jobs that are shown
BAR = 24  # characters of a progress bar


def view(state: RunState, reached: Mapping[str, Reached], now: float, title: str) -> RenderableType:
    """Return the state of the run in a few lines."""
    if not state.totals:
        return Text(f"{title}: planning, {clock(now - state.began)}")
    parts: list[RenderableType] = [headline(state, reached, now, title), stages(state)]
    trains = training(state, reached)
    if trains:
        parts.append(Text(f"  {trains}"))
    running = sorted(state.running.items(), key=lambda item: item[1].began)
    parts += [Text(f"  {line(job, reached.get(number), now)}", style="dim") for number, job in running[:JOBS]]
    if len(running) > JOBS:
        parts.append(Text(f"  and {len(running) - JOBS} more", style="dim"))
    if state.failed:
        last = list(state.failed.values())[-1]
        parts.append(Text(f"  {count(len(state.failed), 'job')} failed, last {last.name}: {last.error}", style="red"))
        parts.append(Text(f"  log: {last.log}", style="red dim"))
    return Group(*parts)


def headline(state: RunState, reached: Mapping[str, Reached], now: float, title: str) -> Text:
    """Return the finished jobs, the time so far and the remaining time."""
    left = say_left(state, reached, now)
    remaining = f", {left}" if left and state.count < state.total else ""
    return Text(
        f"{title}: {state.count} of {count(state.total, 'job')}, {clock(now - state.began)}{remaining}", style="bold"
    )


def stages(state: RunState) -> Table:
    """Return a bar for the jobs of each rule, in the order in which they run."""
    table = Table.grid(padding=(0, 1))
    for rule in state.rules:
        done, total = state.done[rule], state.totals[rule]
        bar = ProgressBar(total=total, completed=done, width=BAR, complete_style="cyan", finished_style="green")
        table.add_row(f"  {escape(STAGES.get(rule, rule))}", bar, f"{done} of {total}")
    return table


def training(state: RunState, reached: Mapping[str, Reached]) -> str:
    """Return the cells and the steps per second of running training jobs."""
    jobs = [job for number, job in reached.items() if getattr(state.running.get(number), "rule", "") == "train"]
    if not jobs:
        return ""
    rate, cells, total = (sum(getattr(job, name) for job in jobs) for name in ("rate", "cells", "total"))
    steps = f", {rate:,.0f} training steps a second" if rate else ""
    return f"{cells:.0f} of {total:.0f} networks of the running jobs are trained{steps}"


def line(job: Job, progress: Reached | None, now: float) -> str:
    """Return the line of a running job."""
    so_far = f"{job.name}, {clock(now - job.began)}"
    if progress is None or not progress.total:
        return so_far
    rate = f", {progress.rate:,.0f} steps a second" if progress.rate else ""
    detail = f", {progress.detail}" if progress.detail else ""
    return f"{so_far}: {progress.cells} of {progress.total} cells{rate}{detail}"


def console() -> Console:
    """Return a console that neither highlights nor wraps."""
    return Console(highlight=False, soft_wrap=False)


def describe_start(state: RunState, title: str) -> str:
    """Return the first line of a run, which lists its jobs."""
    parts = [f"{STAGES.get(rule, rule)} {state.totals[rule]}" for rule in state.rules]
    return f"==> {title}: {count(state.total, 'job')} ({', '.join(parts)})"


def say_running(state: RunState, reached: Mapping[str, Reached], now: float) -> str:
    """Return the line that lists, in a pipe, the running jobs and the remaining time."""
    if not state.totals:
        return f"==> Snakemake starts, {clock(now - state.began)} so far"
    jobs = [line(job, reached.get(number), now) for number, job in state.running.items()]
    more = f" and {len(jobs) - JOBS} more" if len(jobs) > JOBS else ""
    failed = f", {count(len(state.failed), 'job')} failed" if state.failed else ""
    left = say_left(state, reached, now)
    remaining = f", {left}" if left else ""
    running = "; ".join(jobs[:JOBS]) or "no job"
    return (
        f"[{state.count}/{state.total}] {clock(now - state.began)} so far{remaining}{failed}; running: {running}{more}"
    )


def say_ended(state: RunState, job: Job, reached: Mapping[str, Reached], now: float) -> str:
    """Return the line of a job that is done or failed."""
    left = say_left(state, reached, now)
    remaining = f", {left}" if left and job.place < state.total else ""
    when = f"{clock(now - state.began)} so far{remaining}"
    if job.error:
        return f"[{job.place}/{state.total}] failed: {job.name}: {job.error}; log: {job.log}; {when}"
    return f"[{job.place}/{state.total}] {job.name}: {clock(job.seconds or 0.0)}; {when}"
