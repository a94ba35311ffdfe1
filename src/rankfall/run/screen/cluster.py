"""Jobs of a stopped run that are still in SLURM's queue.

Snakemake cancels its jobs when it is interrupted, but while it asks SLURM about them it has forgotten them, and then cancels none. So once
it has ended, its jobs are looked for by the name that they all have, which is a number of this run alone: nobody else's can be meant.
"""

import os
import re
import subprocess
import time

NAME = re.compile(r"^SLURM run ID: ([\w.-]*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.MULTILINE)
ENDING = ("COMPLETING", "COMPLETED", "CANCELLED")  # states of jobs that need no telling
LOOKS = 3  # a job that was being submitted may show a moment later
PAUSE = 1.0  # seconds between two looks
PATIENCE = 30  # seconds for one answer


def name_in(text: str) -> str | None:
    """What the jobs of a run are called, by what Snakemake has said; None where it used no SLURM."""
    found = NAME.findall(text)
    return found[-1] if found else None


def cancel_left(name: str) -> list[str]:
    """Cancel the jobs of this name that are not ending already; their numbers."""
    cancelled: list[str] = []
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        left = [job for job in list_queued(name) if job not in cancelled]
        if not left and look:
            break
        if left:
            _answer(["scancel", *left])
            cancelled += left
    return cancelled


def list_queued(name: str) -> list[str]:
    """Numbers of this user's jobs of this name that wait or run."""
    asked = ["squeue", "--noheader", f"--user={os.getuid()}", f"--name={name}", "--format=%i %T %j"]
    rows = [line.split() for line in _answer(asked).splitlines()]
    return [row[0] for row in rows if len(row) == 3 and row[2] == name and row[1] not in ENDING]


def _answer(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):  # no SLURM here, or one that does not answer
        return ""
