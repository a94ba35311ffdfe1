"""Snakemake as a child process: its words and its events go to files, and signals to this process reach it in the way that loses least.

It has a process group of its own, so that Ctrl-C in a terminal does not kill its jobs, which have a checkpoint to write. Should this
process be killed, Snakemake goes on.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

EVENTS = "RANKFALL_EVENTS"  # as the logger plugin reads it
JOB = b"rankfall.cli"  # in the command of every job, and in none by which Snakemake asks a cluster


class Child:
    """A running Snakemake."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rankfall-run-")
        self.output_file, self.event_file = (Path(self.folder.name) / name for name in ("output", "events"))
        self.event_file.touch()
        self.rest = ""  # of an event that is not complete yet
        self.interrupts = 0
        self.told: set[tuple[int, bytes]] = set()  # processes that were asked to end, with what they ran then
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
        """The exit code, or None if it still runs after so long."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def new_events(self) -> Iterator[dict[str, Any]]:
        """The events since this was last called."""
        *lines, self.rest = (self.rest + self.events.read()).split("\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:  # half of a line, where the disk is full
                continue
            yield event

    def new_output(self) -> bytes:
        return self.output.read()

    def text(self) -> str:
        """All that Snakemake has said."""
        return self.output_file.read_text(errors="replace")

    def close(self) -> None:
        """A child that still runs, because of an error here, is stopped."""
        self.interrupt()
        self.events.close()
        self.output.close()
        self.folder.cleanup()

    def interrupt(self) -> None:
        """Ask Snakemake to stop, and its jobs to write a checkpoint and end; the third time, end them."""
        self.interrupts += 1
        if self.process.poll() is not None:
            return
        if self.interrupts > 2:
            os.killpg(self.process.pid, signal.SIGKILL)
            return
        if self.interrupts > 1:
            os.killpg(self.process.pid, signal.SIGINT)
            return
        processes = group(self.process.pid)
        if not processes:  # no /proc here: then as a terminal does it
            os.killpg(self.process.pid, signal.SIGINT)
            return
        self.process.send_signal(
            signal.SIGINT
        )  # once: a second one would interrupt it while it cancels the jobs of a cluster
        self.tell(processes - {self.process.pid})

    def stop_new_jobs(self) -> None:
        """Ask jobs to end that have started since: Snakemake starts what it had already chosen, and a shell its program."""
        self.tell(job for job in group(self.process.pid) - {self.process.pid} if JOB in command_of(job))

    def tell(self, processes: Iterable[int]) -> None:
        """Send each process the signal once, and again if it has become another program meanwhile."""
        for process in processes:
            if (one := (process, command_of(process))) not in self.told:
                self.told.add(one)
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)

    def end(self, number: int) -> None:
        """Pass a signal on to Snakemake and its jobs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)


def command_of(process: int) -> bytes:
    """The command line of a process in its words; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def group(leader: int) -> set[int]:
    """The processes of a group, where the system has /proc."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()  # a name may hold anything
        except OSError:
            continue
        if int(fields[2]) == leader:
            found.add(int(path.parent.name))
    return found
