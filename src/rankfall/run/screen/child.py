"""Run Snakemake as a child process. Its output and events go to files, and it gets this process's signals in the way that loses least.

The child has its own process group, so that Ctrl-C in a terminal does not kill its jobs, which have a checkpoint to write. If this process
is killed, Snakemake continues.

An interrupted Snakemake cancels its jobs in SLURM's queue, but none if it is just asking SLURM about them. So after its end, `cancel_left`
searches its jobs by their common name, which contains an identifier of the run and so matches no other jobs.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

EVENTS = "RANKFALL_EVENTS"  # the environment variable that the logger plugin reads
JOB = "rankfall.cli"  # part of the command of every job, and of no command that Snakemake sends to a cluster


class Child:
    """A running Snakemake."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rankfall-run-")
        self.output_file, self.event_file = (Path(self.folder.name) / name for name in ("output", "events"))
        self.event_file.touch()
        self.incomplete = ""  # start of an event that is not yet complete
        self.interrupts = 0
        # processes that got SIGTERM, with their commands
        self.signalled: set[tuple[int, tuple[str, ...]]] = set()
        with self.output_file.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                env={**environment, EVENTS: str(self.event_file)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self.events = self.event_file.open(encoding="utf-8")
        self.output = self.output_file.open("rb")

    def code(self, seconds: float) -> int | None:
        """Return the exit code, or None if the child still runs after `seconds`."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def new_events(self) -> Iterator[dict[str, Any]]:
        """Yield the events since the last call."""
        *lines, self.incomplete = (self.incomplete + self.events.read()).split("\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:  # an incomplete line, on a full disk
                continue
            yield event

    def text(self) -> str:
        """Return all of Snakemake's output."""
        return self.output_file.read_text(errors="replace")

    def close(self) -> None:
        """Stop a child that still runs because of an error here, and remove its files."""
        self.interrupt()
        self.events.close()
        self.output.close()
        self.folder.cleanup()

    def interrupt(self) -> None:
        """Ask Snakemake to stop, and its jobs to write a checkpoint and end. The third call kills them."""
        self.interrupts += 1
        if self.process.poll() is not None:
            return
        if self.interrupts > 2:
            os.killpg(self.process.pid, signal.SIGKILL)
            return
        if self.interrupts > 1:
            os.killpg(self.process.pid, signal.SIGINT)
            return
        jobs = self.started()
        # Only once: a second signal would interrupt Snakemake while it cancels the jobs of a cluster.
        self.process.send_signal(signal.SIGINT)
        self.terminate(jobs)

    def started(self) -> list[psutil.Process]:
        """Return Snakemake's child processes, without the fork server, which has a process group of its own."""
        processes = []
        with suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(ProcessLookupError):  # it has ended
                    if os.getpgid(process.pid) == self.process.pid:
                        processes.append(process)
        return processes

    def terminate(self, processes: Iterable[psutil.Process], word: str = "") -> None:
        """Send SIGTERM to each process whose command has this word: once, and again if it runs another program by then."""
        for process in processes:
            with suppress(psutil.Error):  # it has ended
                program = process.pid, tuple(process.cmdline())
                if program not in self.signalled and any(word in part for part in program[1]):
                    self.signalled.add(program)
                    process.terminate()

    def end(self, number: int) -> None:
        """Send a signal to Snakemake and its jobs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)


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
