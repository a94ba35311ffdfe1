"""The record of a run, and the display of a run that another terminal or another machine has started and whose results it sees.

The record is a small file beside the run's logs. It describes the run's state every two seconds.
"""

import datetime
import json
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankfall.disk import StoreError, atomic
from rankfall.errors import RankfallError
from rankfall.run.screen.ending import is_alive
from rankfall.run.screen.logs import Reached, clock, count, read_reached
from rankfall.run.screen.state import RunState

EVERY = 2.0  # seconds between two records
SAY = 20.0  # seconds between two lines, if there is no terminal
LOOK = 1.0  # seconds between two reads of the record
SILENT = 60.0  # seconds without a new record after which its process may be dead


class RunRecord:
    """The writer of a run's record while the run lasts. The last record stays."""

    def __init__(self, results: Path, config: Path, command: str, pid: int) -> None:
        self.path = record_file(results)
        self.written = 0.0
        self.about = {
            "pid": pid,  # of Snakemake, which may outlive the process that started it
            "host": socket.gethostname(),
            "config": str(config),
            "results": str(results),
            "command": command,
            "began_at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        }

    def write(self, state: RunState, how: str = "running") -> None:
        """Write the record if it is due, or if the run ends."""
        if how == "running" and time.monotonic() - self.written < EVERY:
            return
        self.written = time.monotonic()
        content = {**self.about, "how": how, "time": time.time(), "run": state.as_record()}
        try:
            with atomic(self.path) as file:
                file.write(json.dumps(content).encode())
        except StoreError:  # on a full disk the jobs report the error
            return


def record_file(results: Path) -> Path:
    return results / "logs" / "run.json"


def read_record(results: Path) -> dict[str, Any] | None:
    """Return the record of the last run, or None if there is none that can be read."""
    try:
        found = json.loads(record_file(results).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "run" in found else None


@dataclass(frozen=True)
class Seen:
    """The state of a run at one reading of its record."""

    about: Mapping[str, Any]
    state: RunState
    reached: Mapping[str, Reached]
    now: float  # the time of the record, by the clock of the machine that runs it
    title: str
    how: str  # running, ended, stopped or failed


def read_state(results: Path) -> Seen:
    """Read the current record and the progress of the running jobs from their logs."""
    about = read_record(results)
    if about is None and not record_file(results).exists():
        raise RankfallError(
            f"{record_file(results)} is missing: `make run` writes it; no run of these results has begun"
        )
    try:
        content = about or {}
        state = RunState.from_record(content["run"])
        logs = {
            number: read_reached(local_log(job.log, content["results"], results))
            for number, job in state.running.items()
        }
        reached = {number: found for number, found in logs.items() if found is not None}
        title = f"{content['command']} on {content['host']} (process {int(content['pid'])})"
        return Seen(content, state, reached, float(content["time"]), title, content["how"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RankfallError(
            f"{record_file(results)} is damaged, or of another version of Rankfall, and cannot tell what the run does; "
            "the next `make run` writes it anew"
        ) from error


def local_log(log: str, recorded: str, results: Path) -> Path:
    """Return the path of a log on this machine, which may see the results under another path."""
    path = Path(log)
    return results / path.relative_to(recorded) if path.is_relative_to(recorded) else path


def watch(results: Path, terminal: bool) -> int:
    """Show the run until it has ended. Return 1 if it failed, or if its process is dead."""
    from rich.live import Live

    from rankfall.run.screen.screen import console, say_running, view

    # How long a record has not changed is measured by this process alone, since the clocks of two machines may differ.
    said, last, since = -SAY, 0.0, time.monotonic()
    with Live(console=console(), transient=True, auto_refresh=False) if terminal else nullcontext() as live:
        while True:
            seen, now = read_state(results), time.monotonic()
            last, since = seen.now, now if seen.now != last else since
            if seen.how != "running" or not is_alive(seen.about) or now - since > SILENT:
                break
            if live is not None:
                live.update(view(seen.state, seen.reached, seen.now, seen.title), refresh=True)
            elif now - said >= SAY:
                said = now
                print(f"{seen.title}: {say_running(seen.state, seen.reached, seen.now)}", flush=True)
            time.sleep(LOOK)
    return print_end(seen)


def print_end(seen: Seen) -> int:
    """Print how the run ended. Return the exit code."""
    done = f"{seen.state.count} of {count(seen.state.total, 'job')} done after {clock(seen.now - seen.state.began)}"
    how = seen.how
    if how == "running":
        how = "gave no sign of life for a minute" if is_alive(seen.about) else "was killed"
    print(f"==> {seen.title} {how}: {done}")
    for job in seen.state.failed.values():
        print(f"==> failed: {job.name}: {job.error}; log: {job.log}", file=sys.stdout)
    return 0 if how == "ended" else 1
