"""Draw a run: on a terminal a view that changes in place, elsewhere a line when the run begins and a line for each job that ends.

The remaining time is the planned seconds, times the ratio of measured to planned seconds of finished jobs.
"""

from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rankfall.report.labels import many
from rankfall.run.plan.cost import RANGE
from rankfall.run.screen.logs import Reached, clock
from rankfall.run.screen.state import STAGES, Job, RunState

SHOWN = 6  # running jobs that are shown
BAR = 24  # characters of a progress bar
SAYS = ("data", "train", "measure")  # rules whose jobs write what they do as soon as they have loaded PyTorch


def view(state: RunState, reached: Mapping[str, Reached], now: float, title: str) -> RenderableType:
    """Return the state of the run in a few lines."""
    if not state.totals:
        return Text(f"{title}: planning, {clock(now - state.began)}")
    parts: list[RenderableType] = [headline(state, reached, now, title), stages(state)]
    trains = training(state, reached)
    if trains:
        parts.append(Text(f"  {trains}"))
    running = sorted(state.running.items(), key=lambda item: item[1].began)
    parts += [Text(f"  {line(job, reached.get(number), now)}", style="dim") for number, job in running[:SHOWN]]
    if len(running) > SHOWN:
        parts.append(Text(f"  and {len(running) - SHOWN} more", style="dim"))
    if state.failed:
        last = list(state.failed.values())[-1]
        parts.append(Text(f"  {many(len(state.failed), 'job')} failed, last {last.name}: {last.error}", style="red"))
        parts.append(Text(f"  log: {last.log}", style="red dim"))
    return Group(*parts)


def headline(state: RunState, reached: Mapping[str, Reached], now: float, title: str) -> Text:
    """Return the finished jobs, the time so far and the remaining time."""
    left = say_left(state, reached, now)
    return Text(f"{title}: {state.count} of {many(state.total, 'job')}, {clock(now - state.began)}{left}", style="bold")


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
    if not any(job.total for job in jobs):
        return ""
    rate, cells, total = (sum(getattr(job, name) for job in jobs) for name in ("rate", "cells", "total"))
    steps = f", {rate:,.0f} training steps a second" if rate else ""
    return f"{cells:.0f} of {total:.0f} networks of the running jobs are trained{steps}"


def line(job: Job, progress: Reached | None, now: float) -> str:
    """Return the line of a running job."""
    so_far = f"{job.name}, {clock(now - job.began)}"
    if progress is None or job.rule not in SAYS:
        return so_far
    if not progress.total:
        return f"{so_far}: {progress.detail}"
    rate = f", {progress.rate:,.0f} steps a second" if progress.rate else ""
    detail = f", {progress.detail}" if progress.detail else ""
    return f"{so_far}: {progress.cells} of {progress.total} cells{rate}{detail}"


def console() -> Console:
    """Return a console that neither highlights nor wraps."""
    return Console(highlight=False, soft_wrap=False)


def say_running(state: RunState, reached: Mapping[str, Reached], now: float) -> str:
    """Return the line that lists, in a pipe, the running jobs and the remaining time."""
    if not state.totals:
        return f"==> Snakemake starts, {clock(now - state.began)} so far"
    jobs = [line(job, reached.get(number), now) for number, job in state.running.items()]
    more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
    failed = f", {many(len(state.failed), 'job')} failed" if state.failed else ""
    left = say_left(state, reached, now)
    running = "; ".join(jobs[:SHOWN]) or "no job"
    return f"[{state.count}/{state.total}] {clock(now - state.began)} so far{left}{failed}; running: {running}{more}"


def say_ended(state: RunState, job: Job, reached: Mapping[str, Reached], now: float) -> str:
    """Return the line of a job that is done or failed."""
    when = f"{clock(now - state.began)} so far{say_left(state, reached, now)}"
    if job.error:
        return f"[{job.place}/{state.total}] failed: {job.name}: {job.error}; log: {job.log}; {when}"
    return f"[{job.place}/{state.total}] {job.name}: {clock(job.seconds or 0.0)}; {when}"


TRUST = 10.0  # planned seconds of finished jobs at which their ratio weighs as much as the load when the run began


def seconds_left(state: RunState, reached: Mapping[str, Reached], now: float) -> float | None:
    """Return the seconds until the run ends, or None if nothing is known yet.

    `reached` is the progress of running jobs by Snakemake's number."""
    if not state.costs:
        return None
    planned = {output: cost for output, (_, cost, _) in state.costs.items()}
    scales = find_scales(state, planned)
    running = []
    for number, job in state.running.items():
        elapsed = max(0.0, now - job.began)  # a clock may be set back
        progress = reached.get(number)
        if progress is not None and progress.share > 0.02:  # enough to extrapolate from the log
            running.append(elapsed * (1 - min(progress.share, 1.0)) / progress.share)
        else:
            running.append(max(planned.get(job.output, 0.0) * scales[job.rule] - elapsed, 1.0))
    seen = {job.output for job in [*state.running.values(), *state.finished]}
    waiting = []
    for rule, total in state.totals.items():
        left = total - state.done[rule] - sum(job.rule == rule for job in state.running.values())
        costs = [cost for output, (name, cost, _) in state.costs.items() if name == rule and output not in seen]
        waiting += [cost * scales[rule] for cost in sorted(costs, reverse=True)[: max(left, 0)]]
    together = max(1, min(state.cores, len(running) + len(waiting)))
    return max([(sum(running) + sum(waiting)) / together, *running, *waiting], default=0.0)


def find_scales(state: RunState, planned: Mapping[str, float]) -> dict[str, float]:
    """Return rule -> ratio of measured to planned seconds of its finished jobs, which starts from the machine's load."""
    scales = {}
    for rule in state.totals:
        finished = [job for job in state.finished if job.rule == rule and job.output in planned]
        taken, expected = sum(job.seconds or 0.0 for job in finished), sum(planned[job.output] for job in finished)
        scales[rule] = (taken + TRUST * state.slower) / (expected + TRUST)
    return scales


def say_left(state: RunState, reached: Mapping[str, Reached], now: float) -> str:
    """Return `, 2 min to 5 min left`, a range since estimates are right within a factor of about two.

    Return an empty text if nothing is known, or if nothing remains."""
    left = seconds_left(state, reached, now)
    if not left:
        return ""
    low, high = (clock(round_seconds(share * left)) for share in RANGE)
    return f", {low} to {high} left"


def round_seconds(seconds: float) -> float:
    """Round to at most two digits, since more would suggest a precision that the estimate lacks."""
    step = 1 if seconds < 10 else 5 if seconds < 60 else 30 if seconds < 600 else 60
    return step * round(seconds / step)
