"""The record of a run: a small file beside its logs that describes the run's state every two seconds. `rankfall status --watch` reads it,
on any machine that sees the results."""

import datetime
import json
import socket
import time
from pathlib import Path
from typing import Any

from rankfall.disk import StoreError, atomic
from rankfall.run.screen.state import RunState

EVERY = 2.0  # seconds


class RunRecord:
    """The writer of a run's record while the run lasts. The last record stays."""

    def __init__(self, results: Path, config: Path, command: str, pid: int) -> None:
        self.path = file_of(results)
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


def file_of(results: Path) -> Path:
    return results / "logs" / "run.json"


def read(results: Path) -> dict[str, Any] | None:
    """Return the record of the last run, or None if there is none that can be read."""
    try:
        found = json.loads(file_of(results).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "run" in found else None
