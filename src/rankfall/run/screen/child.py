"""Snakemake as a child process. Its output and events go to files, and signals to this process reach it in the way that loses least.

The child has its own process group, so that Ctrl-C in a terminal does not kill its jobs, which have a checkpoint to write. If this process
is killed, Snakemake continues.
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

EVENTS = "RANKFALL_EVENTS"  # the environment variable that the logger plugin reads
JOB = b"rankfall.cli"  # in the command of every job, and in no command with which Snakemake asks a cluster


class Child:
    """A running Snakemake."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rankfall-run-")
        self.output_file, self.event_file = (Path(self.folder.name) / name for name in ("output", "events"))
        self.event_file.touch()
        self.rest = ""  # an event that is not yet complete
        self.interrupts = 0
        self.signalled: set[tuple[int, bytes]] = set()  # processes that were asked to end, with their commands
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
        *lines, self.rest = (self.rest + self.events.read()).split("\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:  # an incomplete line, on a full disk
                continue
            yield event

    def new_output(self) -> bytes:
        return self.output.read()

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
        processes = group(self.process.pid)
        if not processes:  # no /proc on this system: signal the group, as a terminal does
            os.killpg(self.process.pid, signal.SIGINT)
            return
        self.process.send_signal(
            signal.SIGINT
        )  # once: a second one would interrupt it while it cancels the jobs of a cluster
        self.terminate(processes - {self.process.pid})

    def stop_new_jobs(self) -> None:
        """Ask jobs to end that have started since. Snakemake still starts jobs that it had already chosen, and a shell its program."""
        self.terminate(job for job in group(self.process.pid) - {self.process.pid} if JOB in command_of(job))

    def terminate(self, processes: Iterable[int]) -> None:
        """Send each process SIGTERM once, and again if it runs another program by then."""
        for process in processes:
            if (program := (process, command_of(process))) not in self.signalled:
                self.signalled.add(program)
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)

    def end(self, number: int) -> None:
        """Send a signal to Snakemake and its jobs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)


def command_of(process: int) -> bytes:
    """Return the command line of a process, or nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def group(leader: int) -> set[int]:
    """Return the processes of a group, if the system has /proc."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()  # the name may hold anything
        except OSError:
            continue
        if int(fields[2]) == leader:
            found.add(int(path.parent.name))
    return found
