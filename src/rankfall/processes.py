"""Whether a process of this machine still runs, by its number and the time when it began."""

import os
from pathlib import Path


def still_runs(pid: int, began: str | None) -> bool:
    """Whether the process that had this number, and began at that time by `start_of`, has not ended."""
    return is_running(pid) and start_of(pid) == began


def is_running(pid: int) -> bool:
    """Whether some process has this number; not by force the one that had it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def start_of(pid: int) -> str | None:
    """When a process began, in the system's count, which tells it from a later one with the same number; None where it does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
