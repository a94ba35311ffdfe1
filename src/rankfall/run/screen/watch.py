"""Record a run, and show a run that another terminal, or another machine with the same results, started.

The record is a file beside the run's logs: a line that describes the run, then its events. The file's time is that of the last sign of
life.
"""

import datetime
import json
import os
import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rankfall.disk import StoreError, write
from rankfall.errors import RankfallError
from rankfall.project import run_command
from rankfall.report.labels import many
from rankfall.run.screen.ending import is_alive
from rankfall.run.screen.logs import Reached, clock, read_reached
from rankfall.run.screen.state import RunState

EVERY = 2.0  # seconds between two signs of life
SAY = 20.0  # seconds between two lines without a terminal
LOOK = 1.0  # seconds between two reads of the record
SILENT = 60.0  # seconds without a new record after which its process may be dead


class RunRecord:
    """The writer of a run's record. The record of the last run stays."""

    def __init__(self, results: Path, config: Path, command: str, pid: int, state: RunState) -> None:
        self.path = record_file(results)
        self.signed = 0.0
        self.about = {
            "pid": pid,  # of Snakemake, which may outlive the process that started it
            "host": socket.gethostname(),
            "config": str(config),
            "results": str(results),
            "command": command,
            "began_at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "state": {"began": state.began, "costs": state.costs, "slower": state.slower},
        }

    def add(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Append events, or a sign of life every two seconds. The first call begins the record anew."""
        lines = [json.dumps(event) for event in events]
        try:
            if not self.signed:
                write(self.path, f"{json.dumps(self.about)}\n")
            if lines:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("\n".join([*lines, ""]))
            if lines or time.time() - self.signed >= EVERY:
                self.signed = time.time()
                os.utime(self.path, (self.signed, self.signed))  # by this machine's clock, like the times of events
        except (StoreError, OSError):  # on a full disk the jobs report the error
            return


def record_file(results: Path) -> Path:
    """Return the path of the record."""
    return results / "logs" / "run.jsonl"


def read_record(results: Path) -> tuple[dict[str, Any], RunState] | None:
    """Return the description and the state of the last run, or None if no record can be read."""
    try:
        first, *lines = record_file(results).read_text(encoding="utf-8").split("\n")
        description = json.loads(first)
        state = RunState(**description["state"])
        for line in lines[:-1]:  # the last is empty or incomplete
            state.take(json.loads(line))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return description, state


def read_state(results: Path) -> tuple[dict[str, Any], RunState, dict[str, Reached], float]:
    """Return the description and state of the last run, the progress of its running jobs from their logs, and the time of the record by
    the clock of the machine that runs it."""
    file, record = record_file(results), read_record(results)
    if record is None:
        raise RankfallError(
            f"{file} is missing, damaged, or of another version of Rankfall, and cannot tell what a run does\n"
            f"fix: `{run_command()}` writes it anew"
        )
    about, state = record
    # The folder of results may have another path here.
    logs = {n: results / os.path.relpath(job.log, about["results"]) for n, job in state.running.items()}
    reached = {number: progress for number, log in logs.items() if (progress := read_reached(log))}
    return about, state, reached, file.stat().st_mtime


def watch(results: Path, terminal: bool) -> int:
    """Show the run until it has ended. Return 1 if it failed, or if its process is dead."""
    from rich.live import Live

    from rankfall.run.screen.screen import console, say_running, view

    # This process measures by its own clock for how long a record has not changed, since the clocks of two machines may differ.
    last_line, last, since = -SAY, 0.0, time.monotonic()
    with Live(console=console(), transient=True, auto_refresh=False) if terminal else nullcontext() as live:
        while True:
            about, state, reached, written = read_state(results)
            title, now = f"{about['command']} on {about['host']} (process {about['pid']})", time.monotonic()
            last, since = written, now if written != last else since
            if state.how != "running" or not is_alive(about) or now - since > SILENT:
                break
            if live is not None:
                live.update(view(state, reached, written, title), refresh=True)
            elif now - last_line >= SAY:
                last_line = now
                print(f"{title}: {say_running(state, reached, written)}", flush=True)
            time.sleep(LOOK)
    how = state.how
    if how == "running":
        how = "gave no sign of life for a minute" if is_alive(about) else "was killed"
    print(f"==> {title} {how}: {state.count} of {many(state.total, 'job')} done after {clock(written - state.began)}")
    for job in state.failed.values():
        print(f"==> failed: {job.name}: {job.error}; log: {job.log}")
    return 0 if how == "ended" else 1
