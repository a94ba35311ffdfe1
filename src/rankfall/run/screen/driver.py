"""Run Snakemake as a child process and show its progress: a live view on a terminal, else a line per job."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from rankfall.disk import silence
from rankfall.project import find_profile
from rankfall.report.labels import many
from rankfall.run.screen.child import JOB, Child
from rankfall.run.screen.logs import Reached, read_reached
from rankfall.run.screen.state import STAGES, Job, RunState
from rankfall.run.screen.watch import SAY, RunRecord

PAUSE = 0.1  # seconds between two polls of the child
LOOK = 1.0  # seconds between two reads of the running jobs' logs
INTERRUPTED = 130  # exit code after Ctrl-C


def print_line(line: str) -> None:
    """Print a line. If the reader closed the pipe (`make run | head`), discard the output and let the run continue."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        silence()


@dataclass
class Driver:
    """A run of Snakemake from start to end."""

    child: Child
    state: RunState
    title: str
    results: Path
    record: RunRecord
    log: Path | None = None
    reached: dict[str, Reached] = field(default_factory=dict)
    looked: float = 0.0
    unwritten: list[dict[str, Any]] = field(default_factory=list)  # events that are not yet in the record
    signals: list[int] = field(default_factory=list)
    began: bool = False  # whether there are jobs to do

    def follow(self, terminal: bool) -> int:
        """Show the run until the child ends. Return its exit code, or INTERRUPTED after Ctrl-C."""
        with self.pass_signals_on():
            code = self.show(terminal)
        self.keep_output()
        if self.began:
            how = "ended" if not code else "stopped" if self.signals else "failed"
            self.record.add([*self.unwritten, {"event": "rankfall_ended", "how": how}])
        return INTERRUPTED if signal.SIGINT in self.signals and code else code

    def show(self, terminal: bool) -> int:
        """Show a view that changes in place on a terminal, else lines: when the run begins, when a job ends, and every 20 seconds."""
        from rich.live import Live

        from rankfall.run.screen.screen import console, say_ended, say_running, view

        announced, last_line = False, self.state.began
        with Live(console=console(), transient=True, auto_refresh=False) if terminal else nullcontext() as live:
            while True:
                code = self.child.code(PAUSE)
                ended = self.update(code is not None)
                if live is not None:
                    title = self.title + (" (stopping: jobs write their checkpoints)" if self.state.stopping else "")
                    live.update(view(self.state, self.reached, time.time(), title), refresh=True)
                else:
                    lines = [say_ended(self.state, job, self.reached, time.time()) for job in ended]
                    if self.began and not announced:
                        announced = True
                        parts = [f"{STAGES.get(rule, rule)} {self.state.totals[rule]}" for rule in self.state.rules]
                        lines.insert(0, f"==> {self.title}: {many(self.state.total, 'job')} ({', '.join(parts)})")
                    if not lines and time.time() - last_line >= SAY:
                        lines = [say_running(self.state, self.reached, time.time())]
                    for text in lines:
                        last_line = time.time()
                        print_line(text)
                if code is not None:
                    return code

    def update(self, last: bool = False) -> list[Job]:
        """Process new events and return the jobs that ended since the last call."""
        ended = []
        if self.signals:
            # Snakemake still starts jobs that it had chosen, and a shell its program.
            self.child.terminate(self.child.started(), JOB)
        for event in self.child.new_events():
            job = self.state.take(event)
            ended += [job] if job else []
            self.unwritten.append(event)
            self.began |= event.get("event") == "rankfall_began"
        now = time.monotonic()
        if now - self.looked >= LOOK or last:
            self.looked = now
            logs = {number: Path(job.log) for number, job in self.state.running.items() if job.log}
            self.reached = {number: progress for number, log in logs.items() if (progress := read_reached(log))}
        if self.began:
            self.keep_output()
            self.record.add(self.unwritten)
            self.unwritten.clear()
        return ended

    def keep_output(self) -> None:
        """Append Snakemake's new output to the run's log."""
        if not self.began:
            return
        with suppress(OSError):  # on a full disk the jobs report the error; a failed log does not stop the run
            if self.log is None:
                log = self.results / "logs" / "run.log"
                log.parent.mkdir(parents=True, exist_ok=True)
                log.unlink(missing_ok=True)
                self.log = log
            if new := self.child.output.read():
                with self.log.open("ab") as file:
                    file.write(new)

    @contextmanager
    def pass_signals_on(self) -> Iterator[None]:
        """Pass signals on to the child: signals that end this process interrupt it like Ctrl-C, and Ctrl-Z pauses it."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.signals.append(number)
            self.unwritten.append({"event": "rankfall_stopping"})
            self.state.stopping = True
            self.child.interrupt()  # SIGINT for any signal: at SIGTERM, Snakemake takes a lock that its own thread may hold

        def pause(number: int, frame: FrameType | None) -> None:
            self.child.end(signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)  # until `fg` or `bg` in the shell
            self.child.end(signal.SIGCONT)

        handlers = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: stop, signal.SIGTSTP: pause}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def command(config: Path, profile: Path, more: Sequence[str]) -> list[str]:
    """Return the command that starts Snakemake."""
    profile_folder = str(find_profile(profile))
    return [sys.executable, "-m", "snakemake", "--configfile", str(config), "--workflow-profile", profile_folder, *more]
