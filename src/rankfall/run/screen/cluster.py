"""Cancel jobs of a stopped run that are still in SLURM's queue.

An interrupted Snakemake cancels its jobs, but none if it is just asking SLURM about them. So after its end, this module searches its jobs
by their common name, which contains an identifier of the run and so matches no other jobs.
"""

import os
import re
import subprocess
import time

NAME = re.compile(r"^SLURM run ID: ([\w.-]*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.MULTILINE)
ENDING = ("COMPLETING", "COMPLETED", "CANCELLED")  # states of jobs that need no cancelling
LOOKS = 3  # searches: a job that was just being submitted may appear a moment later
PAUSE = 1.0  # seconds between two searches
PATIENCE = 30  # seconds for an answer of SLURM


def name_in(text: str) -> str | None:
    """Return the name of a run's jobs from Snakemake's output, or None if it used no SLURM."""
    names = NAME.findall(text)
    return names[-1] if names else None


def cancel_left(name: str) -> list[str]:
    """Cancel the jobs of this name that are not ending already, and return their numbers."""
    cancelled: list[str] = []
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        queued = [job for job in list_queued(name) if job not in cancelled]
        if not queued and look:
            break
        if queued:
            _answer(["scancel", *queued])
            cancelled += queued
    return cancelled


def list_queued(name: str) -> list[str]:
    """Return the numbers of this user's waiting or running jobs of this name."""
    query = ["squeue", "--noheader", f"--user={os.getuid()}", f"--name={name}", "--format=%i %T %j"]
    rows = [line.split() for line in _answer(query).splitlines()]
    return [row[0] for row in rows if len(row) == 3 and row[2] == name and row[1] not in ENDING]


def _answer(command: list[str]) -> str:
    """Return the output of a command of SLURM."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):  # SLURM is missing or does not answer
        return ""
