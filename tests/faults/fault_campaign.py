"""Carry out interleavings, and compare the tables and figures of the last run with those of an undisturbed run from nothing."""

import os
import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from interleavings import Interleaving, Step, interleaving
from programs import Hang, Program
from small_grid import EDITS, TABLES, Grid, Texts, unforeseen

from rankfall.report import tables
from rankfall.report.runs import differences

LONGEST = 180.0  # seconds that any one program may take
FINISHED = re.compile(r"^Finished jobid: \d+ \(Rule: (?!all)", re.MULTILINE)
# What Snakemake 9 says when a file is gone between its look at whether it is there and its next look at it.
VANISHED = ("Unable to obtain modification time of file", "Write-protected output files")


class Wrong(Exception):
    """A result differs, or a program behaves in an unexpected way."""


@dataclass
class Campaign:
    """A folder for checkouts, and the undisturbed runs that others are compared with."""

    folder: Path
    references: dict[tuple[str, Texts], Grid] = field(default_factory=dict)
    count: int = 0  # programs that were started

    def attempt(self, seed: int) -> str | None:
        """Carry out the interleaving of a seed. Return what is wrong and all that is needed to reproduce it, or None."""
        story = interleaving(seed)
        folder = self.folder / f"seed{seed}"
        fresh = story.begins == "nothing"
        grid = Grid.make(folder) if fresh else self.reference(story.begins, (0, 0, 0)).copy(folder)
        events = Events(self, grid)
        try:
            events.all(story)
        except (Wrong, Hang) as wrong:
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
            grid = Grid.make(self.folder / f"reference-{config}-{''.join(map(str, texts))}", texts)
            done = self.snakemake(grid, config)
            if done.end(LONGEST):
                raise AssertionError(f"a run from nothing fails:\n{short(done.text())}")
            self.references[key] = grid
        return self.references[key]

    def snakemake(self, grid: Grid, config: str, *arguments: str) -> Program:
        profile = ("--workflow-profile", "workflow/profiles/default", "--cores", "2")
        return self.program(grid, "snakemake", "--configfile", f"{config}.yaml", *profile, *arguments)

    def program(self, grid: Grid, module: str, *arguments: str) -> Program:
        """Start a program with bytecode on, which is the default of Python."""
        left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "SNAKEMAKE_PROFILE")
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        if module.startswith("rankfall"):
            environment["PYTHONPATH"] = str(grid.folder / "src")
        self.count += 1
        output = self.folder / "programs" / f"{self.count}.out"
        return Program.start(module, *arguments, output=output, cwd=grid.folder, environment=environment)


def short(output: str) -> str:
    """Return the lines of errors and warnings, and the end."""
    return "\n".join(
        [*re.findall(r"^(?:\w*[Ee]rror|warning|.* is damaged)\b.*", output, re.MULTILINE), "...", output[-1500:]]
    )


class Events:
    """The steps of one interleaving, carried out on a grid."""

    def __init__(self, campaign: Campaign, grid: Grid) -> None:
        self.campaign, self.grid = campaign, grid
        self.live: Program | None = None
        self.disturbed = False  # whether a step may have ended the live run
        self.happened: list[str] = []

    def all(self, story: Interleaving) -> None:
        for step in story.steps:
            began = time.monotonic()
            self.happened.append(str(step))
            outcome = getattr(self, step.kind)(step)
            self.happened[-1] += f": {outcome or 'done'}, {time.monotonic() - began:.1f} s"
        self._join()
        self._at_last(story.ends)
        if story.again:
            self.happened.append("once more from the store")
            shutil.rmtree(self.grid.folder / ".snakemake")
            for part in ("work", "tables", "figures"):
                shutil.rmtree(self.grid.results / part, ignore_errors=True)
            self._at_last(story.ends)

    def _at_last(self, config: str) -> None:
        """Run undisturbed, compare the results, and check that a second run has nothing to do."""
        self._unlock()
        done = self._ended(self.campaign.snakemake(self.grid, config))
        if done.code:
            raise Wrong(f"the last run ends with {done.code}:\n{short(done.text())}")
        self.compare(config)
        again = self._ended(self.campaign.snakemake(self.grid, config))
        if "Nothing to be done" not in again.text():
            raise Wrong(f"a second run finds something to do:\n{short(again.text())}")

    def compare(self, config: str) -> None:
        """Compare tables row by row, and figures and captions byte by byte."""
        expected = self.campaign.reference(config, self.grid.texts())
        for name in TABLES:
            table, other = (
                tables.read(grid.results / "tables" / f"{name}.parquet", name) for grid in (self.grid, expected)
            )
            apart = differences(table, other)
            if apart:
                raise Wrong(f"table {name} is not that of a run from nothing (the second):\n  " + "\n  ".join(apart))
        for file in expected.files("figure"):
            drawn = self.grid.results / "figures" / file.name
            if drawn.read_bytes() != file.read_bytes():
                raise Wrong(f"{file.name} is not that of a run from nothing")

    # What a step does.

    def start(self, step: Step) -> str:
        self._join()
        self._unlock()
        self.disturbed = False
        self.live = self.campaign.snakemake(self.grid, step.detail["config"])
        limit = time.monotonic() + LONGEST
        while len(FINISHED.findall(self.live.text())) < step.detail["jobs"] and time.monotonic() < limit:
            if self.live.wait(0.01) is not None:
                return "over before that"
        self.live.wait(step.detail["seconds"])
        return f"{len(FINISHED.findall(self.live.text()))} jobs finished"

    def run(self, step: Step) -> str:
        self._join()
        self._unlock()
        return self._run(step)

    def other(self, step: Step) -> str:
        return self._run(step)

    def _run(self, step: Step) -> str:
        beside = self.live is not None and self.live.wait(0) is None
        if not beside:
            self._unlock()
        done = self._ended(self.campaign.snakemake(self.grid, step.detail["config"]))
        refused = "LockException" in done.text() or "Directory cannot be locked" in done.text()
        return "refused" if refused else f"exit status {done.code}"

    def dry(self, step: Step) -> str:
        beside = self.live is not None and self.live.wait(0) is None
        done = self._ended(self.campaign.snakemake(self.grid, step.detail["config"], "--dry-run"))
        if done.code and beside and any(said in done.text() for said in VANISHED):
            return "ended by Snakemake: the run removes an output just then, to make it again"
        if done.code:
            raise Wrong(f"a dry run ends with {done.code}:\n{short(done.text())}")
        return "ok"

    def gc(self, step: Step) -> str:
        config = f"{step.detail['config']}.yaml"
        done = self._ended(
            self.campaign.program(self.grid, "rankfall.cli", "gc", "--config", config, "--delete", "--keep-days", "0")
        )
        if done.code:
            raise Wrong(f"gc ends with {done.code}:\n{short(done.text())}")
        return done.text().strip().splitlines()[-1]

    def kill(self, step: Step) -> str:
        if self.live is None or self.live.wait(0) is not None:
            return "nothing runs"
        self.live.kill()
        jobs = len(FINISHED.findall(self.live.text()))
        self._look(self.live)
        self.live = None
        return f"after {jobs} jobs"

    def edit(self, step: Step) -> str:
        text = 1 - self._text(step.detail["file"])
        self.disturbed = True
        self.grid.write(step.detail["file"], text)
        return f"now text {text}"

    def undo(self, step: Step) -> str:
        first = self.edit(step)
        time.sleep(step.detail["seconds"])
        return f"{first}, {self.edit(step)}"

    def _text(self, file: str) -> int:
        return dict(zip(EDITS, self.grid.texts()))[file]

    def remove(self, step: Step) -> str:
        files = self.grid.files(step.detail["what"])
        chosen = self._chosen(step.detail["what"], step.detail["one"])
        self.disturbed = True
        for path in files if step.detail["all"] else [chosen] * (chosen is not None):
            path.unlink(missing_ok=True)
        return f"{len(files)} files" if step.detail["all"] else self._name(chosen)

    def forget(self, step: Step) -> None:
        """Remove Snakemake's folder between runs, as a user might."""
        self._join()
        shutil.rmtree(self.grid.folder / ".snakemake", ignore_errors=True)

    # What steps share.

    def _join(self) -> None:
        """Let the live run end. It must succeed unless a step disturbed it."""
        if self.live is None:
            return
        done, self.live = self._ended(self.live), None
        if done.code and not self.disturbed:
            raise Wrong(f"a run that nothing was done to ends with {done.code}:\n{short(done.text())}")

    def _ended(self, program: Program) -> Program:
        program.end(LONGEST)
        self._look(program)
        return program

    def _look(self, program: Program) -> None:
        found = [*unforeseen(program.text()), *self.grid.tracebacks()]
        if found:
            raise Wrong(f"a program ends in a way that nobody foresaw:\n{found[0]}")

    def _unlock(self) -> None:
        """Remove the lock as `snakemake --unlock` does, which takes a second."""
        shutil.rmtree(self.grid.folder / ".snakemake" / "locks", ignore_errors=True)

    def _chosen(self, what: str, where: float) -> Path | None:
        files = self.grid.files(what)
        return files[min(int(where * len(files)), len(files) - 1)] if files else None

    def _name(self, path: Path | None) -> str:
        return "no file" if path is None else str(path.relative_to(self.grid.folder))
