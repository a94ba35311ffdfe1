"""Checks whether a process of this machine still runs, by its number (PID) and start time."""

import os
from pathlib import Path


def still_runs(pid: int, began: str | None) -> bool:
    """Return whether the process with this number and this start time, as returned by `start_of`, still runs."""
    return is_running(pid) and start_of(pid) == began


def is_running(pid: int) -> bool:
    """Return whether any process has this number. Numbers are reused, so it may be a later process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True


def start_of(pid: int) -> str | None:
    """Return the start time of a process in clock ticks since boot, which distinguishes it from a later process with the same number; None
    where `/proc` does not have it.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
