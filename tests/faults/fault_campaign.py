"""Carry out interleavings, and compare the tables and figures of the last run with those of an undisturbed run from nothing."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from interleavings import Interleaving, Step, draw_interleaving
from small_grid import EDITS, TABLES, Grid, Texts, find_tracebacks

from rankfall.report.runs import differences

LONGEST = 180.0  # seconds that any one program may take
FINISHED = re.compile(r"^Finished jobid: \d+ \(Rule: (?!all)", re.MULTILINE)
LOCKED = re.compile("LockException|Directory cannot be locked")
# What Snakemake 9 says when a file is gone between its look at whether it is there and its next look at it.
VANISHED = re.compile("Unable to obtain modification time of file|Write-protected output files")


class Wrong(Exception):
    """A result differs, or a program behaves in an unexpected way."""


class Program:
    """A running program with all that it starts, a process group. Its output goes to a file."""

    def __init__(self, command: list[str], output: Path, folder: Path, environment: dict[str, str]) -> None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                process_group=0,
            )  # fmt: skip
        self.output = output

    def wait(self, seconds: float) -> int | None:
        """Return the exit status, or None if the program takes longer."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def end(self) -> int:
        """Return the exit status. Kill a program that takes too long, and raise."""
        code = self.wait(LONGEST)
        if code is None:
            self.kill()
            raise Wrong(f"no end after {LONGEST:.0f} s\n{self.text()[-4000:]}")
        return code

    def kill(self) -> None:
        """Kill the whole group at once, as a power cut does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.wait(30) is None:
            raise Wrong("a killed program is still there")

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def count_finished(self) -> int:
        """Return the number of jobs that have finished."""
        return len(FINISHED.findall(self.text()))

    def summary(self) -> str:
        """Return the exit status, the lines of errors and warnings, and the end of the output."""
        errors = re.findall(r"^(?:\w*[Ee]rror|warning|.* is damaged)\b.*", self.text(), re.MULTILINE)
        return "\n".join([f"exit status {self.wait(0)}", *errors, "...", self.text()[-1500:]])


@dataclass
class Campaign:
    """A folder for checkouts, and the undisturbed runs that others are compared with."""

    folder: Path
    references: dict[tuple[str, Texts], Grid] = field(default_factory=dict)
    count: int = 0  # programs that were started

    def attempt(self, seed: int) -> str | None:
        """Carry out the interleaving of a seed. Return what is wrong and all that is needed to reproduce it, or None."""
        story, folder = draw_interleaving(seed), self.folder / f"seed{seed}"
        fresh = story.begins == "nothing"
        grid = Grid.prepare(folder) if fresh else self.reference(story.begins, (0, 0, 0)).copy(folder)
        events = Events(self, grid)
        try:
            events.carry_out(story)
        except Wrong as wrong:
            return f"{wrong}\n{story}\nevents:\n  " + "\n  ".join(events.happened)
        finally:
            if events.live is not None:
                events.live.kill()
            shutil.rmtree(folder)
        return None

    def reference(self, config: str, texts: Texts) -> Grid:
        """Return a finished run from nothing."""
        key = config, texts
        if key not in self.references:
            grid = Grid.prepare(self.folder / f"reference-{config}-{''.join(map(str, texts))}", texts)
            program = self.snakemake(grid, config)
            assert program.end() == 0, f"a run from nothing fails:\n{program.summary()}"
            self.references[key] = grid
        return self.references[key]

    def snakemake(self, grid: Grid, config: str, *arguments: str) -> Program:
        return self.start(grid, grid.command("--configfile", f"{config}.yaml", *arguments))

    def start(self, grid: Grid, command: list[str], **environment: str) -> Program:
        self.count += 1
        output = self.folder / "programs" / f"{self.count}.out"
        return Program(command, output, grid.folder, grid.environment() | environment)


class Events:
    """The steps of one interleaving, carried out on a grid."""

    def __init__(self, campaign: Campaign, grid: Grid) -> None:
        self.campaign, self.grid = campaign, grid
        self.live: Program | None = None
        self.disturbed = False  # whether a step may have ended the live run
        self.happened: list[str] = []

    def carry_out(self, story: Interleaving) -> None:
        for step in story.steps:
            began = time.monotonic()
            self.happened.append(str(step))
            outcome = getattr(self, step.kind)(step)
            self.happened[-1] += f": {outcome or 'done'}, {time.monotonic() - began:.1f} s"
        self._join()
        self._run_last(story.ends)
        if story.again:
            self.happened.append("once more from the store")
            shutil.rmtree(self.grid.folder / ".snakemake")
            for part in ("work", "tables", "figures"):
                shutil.rmtree(self.grid.results / part, ignore_errors=True)
            self._run_last(story.ends)

    def _run_last(self, config: str) -> None:
        """Run undisturbed, compare the results, and check that a second run has nothing to do."""
        self._unlock()
        self._end(self.campaign.snakemake(self.grid, config), "the last run")
        self.compare(config)
        again = self._end(self.campaign.snakemake(self.grid, config))
        if "Nothing to be done" not in again.text():
            raise Wrong(f"a second run finds something to do:\n{again.summary()}")

    def compare(self, config: str) -> None:
        """Compare tables row by row, and figures and captions byte by byte."""
        expected = self.campaign.reference(config, self.grid.texts())
        for name in TABLES:
            apart = differences(self.grid.table(name), expected.table(name))
            if apart:
                raise Wrong(f"table {name} is not that of a run from nothing (the second):\n  " + "\n  ".join(apart))
        for file in expected.files("figure"):
            if (self.grid.results / "figures" / file.name).read_bytes() != file.read_bytes():
                raise Wrong(f"{file.name} is not that of a run from nothing")

    # What a step does.

    def start(self, step: Step) -> str:
        self._join()
        self._unlock()
        self.disturbed = False
        self.live = self.campaign.snakemake(self.grid, step.detail["config"])
        limit = time.monotonic() + LONGEST
        while self.live.count_finished() < step.detail["jobs"] and time.monotonic() < limit:
            if self.live.wait(0.01) is not None:
                return "over before that"
        self.live.wait(step.detail["seconds"])
        return f"{self.live.count_finished()} jobs finished"

    def run(self, step: Step) -> str:
        self._join()
        return self.other(step)

    def other(self, step: Step) -> str:
        if not self._is_live():
            self._unlock()
        program = self._end(self.campaign.snakemake(self.grid, step.detail["config"]))
        return "refused" if LOCKED.search(program.text()) else f"exit status {program.wait(0)}"

    def dry(self, step: Step) -> str:
        beside = self._is_live()
        program = self._end(self.campaign.snakemake(self.grid, step.detail["config"], "--dry-run"))
        if program.wait(0) and beside and VANISHED.search(program.text()):
            return "ended by Snakemake: the run removes an output just then, to make it again"
        if program.wait(0):
            raise Wrong(f"a dry run fails: {program.summary()}")
        return "ok"

    def gc(self, step: Step) -> str:
        words = ["gc", "--config", f"{step.detail['config']}.yaml", "--delete", "--keep-days", "0"]
        command = [sys.executable, "-m", "rankfall.cli", *words]
        program = self.campaign.start(self.grid, command, PYTHONPATH=str(self.grid.folder / "src"))
        return self._end(program, "gc").text().strip().splitlines()[-1]

    def kill(self, step: Step) -> str:
        if self.live is None or not self._is_live():
            return "nothing runs"
        program, self.live = self.live, None
        program.kill()
        self._look(program)
        return f"after {program.count_finished()} jobs"

    def edit(self, step: Step) -> str:
        text = 1 - dict(zip(EDITS, self.grid.texts()))[step.detail["file"]]
        self.disturbed = True
        self.grid.write(step.detail["file"], text)
        return f"now text {text}"

    def undo(self, step: Step) -> str:
        first = self.edit(step)
        time.sleep(step.detail["seconds"])
        return f"{first}, {self.edit(step)}"

    def remove(self, step: Step) -> str:
        files = self.grid.files(step.detail["what"])
        chosen = files if step.detail["all"] else files[int(step.detail["where"] * len(files)) :][:1]
        self.disturbed = True
        for path in chosen:
            path.unlink(missing_ok=True)
        return f"{len(files)} files" if step.detail["all"] else ", ".join(map(str, chosen))

    def forget(self, step: Step) -> None:
        """Remove Snakemake's folder between runs, as a user might."""
        self._join()
        shutil.rmtree(self.grid.folder / ".snakemake", ignore_errors=True)

    # What steps share.

    def _is_live(self) -> bool:
        return self.live is not None and self.live.wait(0) is None

    def _join(self) -> None:
        """Let the live run end. It must succeed unless a step disturbed it."""
        if self.live is not None:
            program, self.live = self.live, None
            self._end(program, "" if self.disturbed else "a run that nothing was done to")

    def _end(self, program: Program, name: str = "") -> Program:
        """Let a program end; one with a name must succeed."""
        code = program.end()
        self._look(program)
        if code and name:
            raise Wrong(f"{name} fails: {program.summary()}")
        return program

    def _look(self, program: Program) -> None:
        tracebacks = [*find_tracebacks(program.text()), *self.grid.tracebacks()]
        if tracebacks:
            raise Wrong(f"a program ends in a way that nobody foresaw:\n{tracebacks[0]}")

    def _unlock(self) -> None:
        """Remove the lock as `snakemake --unlock` does, which takes a second."""
        shutil.rmtree(self.grid.folder / ".snakemake" / "locks", ignore_errors=True)
