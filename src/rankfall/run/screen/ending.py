"""Write the last lines of a run: where its results are, or why it ended and which command to run next."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankfall.report.labels import many
from rankfall.run.screen.logs import clock
from rankfall.run.screen.state import RunState
from rankfall.run.store.announced import is_running

FAILED = 5  # failed jobs that are listed


def say_finished(state: RunState, results: Path, config: Path, seconds: float) -> Iterator[str]:
    """Yield the last lines of a successful run."""
    if state.totals:
        yield f"==> done: {many(state.count, 'job')} in {clock(seconds)}"
    else:
        yield from say_nothing_to_do(results, config, [])


def say_nothing_to_do(results: Path, config: Path, published: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a run whose work files all exist. `published` names the files that were missing or differed."""
    if published:
        more = f" and {len(published) - FAILED} more" if len(published) > FAILED else ""
        yield f"==> published again: {', '.join(published[:FAILED])}{more}"
    yield f"==> nothing to do: {results} is up to date with {config} and the code"


def say_where(results: Path) -> Iterator[str]:
    """Yield the path of the page, or of the tables and figures of a run without one."""
    page = page_of(results)
    if page.is_file():
        yield f"==> page: {page} (`rankfall open{option(results)}`)"
    else:
        yield f"==> tables: {results / 'tables'}; figures: {results / 'figures'}"


def page_of(results: Path) -> Path:
    """Return the path of the page."""
    return results / "report" / "index.html"


def option(results: Path) -> str:
    """Return the command-line option for a folder of results; empty for the default folder."""
    return "" if results == Path("results") else f" --results {results}"


def say_stopped(state: RunState, again: str, seconds: float) -> Iterator[str]:
    """Yield the last lines of a run that was stopped."""
    done = f"{state.count} of {many(state.total, 'job')}" if state.totals else "nothing"
    yield f"==> stopped after {clock(seconds)}: {done} done. Finished cells are kept, and training continues from its checkpoint"
    yield f"==> to go on: {again}"


def say_failed(state: RunState, results: Path, again: str, log: Path | None) -> Iterator[str]:
    """Yield the last lines of a run in which jobs failed, and why there is no page, or which tables and figures it lacks."""
    yield from list_failed(state)
    yield f"==> {state.count} of {many(state.total, 'job')} done, {len(state.failed)} failed; to try these again: {again}"
    if log is not None:
        yield f"==> output of Snakemake: {log}"
    if state.no_page:
        yield f"==> no page: {state.no_page}"
    elif state.lacks:
        yield from say_where(results)
        yield f"==> the page lacks {', '.join(state.lacks)}"


def list_failed(state: RunState) -> Iterator[str]:
    """Yield a line for each of the first failed jobs, with its error and log."""
    jobs = list(state.failed.values())
    for job in jobs[:FAILED]:
        yield f"==> failed: {job.name}: {job.error}; log: {job.log}"
    if len(jobs) > FAILED:
        yield f"==> ... and {len(jobs) - FAILED} more"


def say_refused(state: RunState, text: str, other: Mapping[str, Any] | None, again: str, unlock: str) -> Iterator[str]:
    """Yield why Snakemake ended before its first job."""
    if state.refused == "LockException":
        yield say_locked(other, again, unlock)
        return
    errors = [line for line in text.splitlines() if line.startswith("error: ")]
    if errors:
        yield errors[-1]
        return
    lines = [line for error in state.errors for line in error.splitlines() if line.strip()]
    yield from lines[:12] or text.splitlines()[-12:]


def say_locked(other: Mapping[str, Any] | None, again: str, unlock: str) -> str:
    """Return the error of a locked folder: another run uses it, or a killed run left its lock."""
    if other is None or not is_alive(other):
        return f"error: a run ended without removing its lock: if nothing runs, type `{unlock}`, then `{again}`"
    process = f"process {other['pid']} on {other['host']}, since {other['began_at']}"
    wait = f"wait for it, or watch it with `rankfall status --watch --config {other['config']}`"
    return f"error: `{other['command']}` is working on these results ({process}): {wait}"


def is_alive(record: Mapping[str, Any]) -> bool:
    """Return whether the process of a record runs. A process on another machine counts as running, since this machine cannot see it."""
    if record.get("host") != socket.gethostname():
        return True
    return is_running(int(record["pid"]))
