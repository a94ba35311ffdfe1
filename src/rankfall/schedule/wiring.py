"""The plan in the form that the workflow's rules need: lists of files, the digest of what each job makes, and what each job needs.

Snakemake compares a rule's params as a set of their representations, but for paths. So a job's digest is a string, and what may change
without changing any result (the name of the configuration's file, where this package lies) is a `Path`.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import rankfall
from rankfall.code.analyses import keep
from rankfall.disk import atomic, not_ahead
from rankfall.errors import RankfallError
from rankfall.plan import cost
from rankfall.plan.build import MeasurePlan, Plan, make_plan
from rankfall.plan.cell import Cell, digest
from rankfall.report.style import MADE
from rankfall.schedule.claim import claim
from rankfall.schedule.lookups import ShardJob
from rankfall.schedule.outputs import Outputs
from rankfall.schedule.standing import Standing, standing
from rankfall.schedule.statements import Statement, Statements

SECONDS = 4  # of a cell, for a measure whose file says no COST
SPARE = 1220  # megabytes of a job beyond the estimate: it is a limit
SHARD_RULES = frozenset({"data", "train", "measure"})
MOST = 3  # times what the first attempt may use; a job that was preempted often is no larger for that


class Wiring:
    """All that the Snakefile asks for, for one configuration. `runs`: in the process that runs the jobs, which alone may look at
    what there is; not in a job of a cluster, which plans again.
    """

    def __init__(self, config: Mapping[str, Any], runs: bool = False) -> None:
        self.raw = dict(config)
        self.runs = runs
        self.told = False
        self.forced = False
        self.plan: Plan = make_plan(self.raw)
        self.outputs = Outputs.under(self.plan.config.results)
        self.statements = Statements(self.plan)
        self.threads = self.plan.config.compute.threads
        # Of no result's identity, so paths: Snakemake reruns nothing when these change.
        self.places = {
            "config": self.config,
            "results": Path(self.results),
            "package": Path(rankfall.__file__).parent,
        }

    @property
    def results(self) -> str:
        return self.outputs.folder

    @property
    def config(self) -> Path:
        """The file that all jobs read the configuration from: named by its content, so that no other run can change it."""
        return Path(self.results) / "plan" / f"{digest(self._text)}.json"

    @property
    def _text(self) -> str:
        return json.dumps(self.raw, indent=1) + "\n"

    def begin(self) -> None:
        """What a run does before its first job, and a dry run or one that is refused does not."""
        claim(Path(self.results))
        not_ahead(Path(self.results) / part for part in ("shards", "tables", "figures", "report"))
        self.write_config()
        if self.lookups:
            with atomic(self.lookup_file) as file:
                file.write(json.dumps(self.lookups).encode())

    def write_config(self) -> None:
        """An existing file is not rewritten."""
        if not self.config.is_file() or self.config.read_bytes() != self._text.encode():
            with atomic(self.config) as file:
                file.write(self._text.encode())

    # What there is.

    @property
    def tables(self) -> list[str]:
        return self.statements.tables

    @property
    def figures(self) -> list[str]:
        return sorted(self.plan.figures)

    @cached_property
    def standing(self) -> Standing:
        """Which outputs are there and right."""
        found = standing(self.plan, self.statements, self.outputs)
        keep()  # of what statements have read beyond the plan
        return found

    def tell(self, everything: bool, rules: Iterable[str]) -> None:
        """The jobs that the command line forces. Where jobs of shards are forced, what is made of them has to wait for them."""
        self.told = True
        self.forced = everything or any(rule in SHARD_RULES or "/shards/" in rule for rule in rules)

    # What needs no job of its own.

    @cached_property
    def lookups(self) -> list[ShardJob]:
        """Jobs of shards that would only look things up."""
        return sorted(self.standing.lookups) if self.runs else []

    @cached_property
    def lookup(self) -> Statement:
        return self.statements.lookup(self.lookups)

    @property
    def lookup_outputs(self) -> list[str]:
        return [path for job in self.lookups for path in self.outputs.of(job)]

    @property
    def lookup_file(self) -> Path:
        """The list of them: a command line has no room for thousands."""
        return self.config.with_name(f"lookup-{self.lookup.digest}.json")

    # What jobs need and make.

    def targets(self, wildcards: Any) -> list[str]:
        """All tables and figures, and the page of them."""
        tables = [self.outputs.table(table) for table in self.tables]
        page = [self.outputs.page] * self.plan.config.page
        return tables + [self.outputs.picture(figure) for figure in self.figures] + page

    def train_inputs(self, wildcards: Any) -> list[str]:
        """The data sets that a shard is trained on, where it is trained: new ones are no reason to look up all shards again."""
        job = ShardJob(wildcards.task, wildcards.shard)
        return [self.outputs.data(wildcards.task)] if self._waits(job) else []

    def measure_inputs(self, wildcards: Any) -> list[str]:
        """That a shard's networks are there, where they have to be trained; they are in the store."""
        place = wildcards.task, wildcards.shard
        waits = self._waits(ShardJob(*place, wildcards.measure)) and self._waits(ShardJob(*place))
        return [self.outputs.cells(*place)] if waits else []

    def _waits(self, job: ShardJob) -> bool:
        """Whether a job has something to compute. A job of a cluster was started because it has, when all it needs was there."""
        return self.forced or (self.runs and job in self.standing.computing)

    def table_inputs(self, wildcards: Any) -> list[str]:
        """The shards of a table."""
        return [part.path for part in self.statements.parts(wildcards.table, self.outputs)]

    def free_measure_inputs(self, wildcards: Any) -> list[str]:
        """The tables that a measure of tables is computed from."""
        return [self.outputs.table(table) for table in self.plan.measure(wildcards.measure).tables]

    def figure_inputs(self, wildcards: Any) -> list[str]:
        """The tables of a figure."""
        return [self.outputs.table(table) for table in self.plan.figure(wildcards.figure).tables]

    @property
    def figure_kinds(self) -> list[str]:
        """The files of a figure beside its picture."""
        return [kind for kind in MADE if kind != "png"]

    def page_inputs(self, wildcards: Any) -> list[str]:
        """All tables and figures: numbers are in the page, figures are linked with their captions."""
        return [
            *(self.outputs.table(table) for table in self.tables),
            *(self.outputs.picture(figure) for figure in self.figures),
        ]

    def figure_category(self, wildcards: Any) -> str:
        """The category in the report: one for all figures of the same main table."""
        return self.plan.figures[wildcards.figure].tables[0].replace("_", " ")

    # What each job makes.

    def data(self, wildcards: Any) -> str:
        return self.statements.data(wildcards.task).digest

    def train(self, wildcards: Any) -> str:
        return self.statements.train(wildcards.task, wildcards.shard).digest

    def measure(self, wildcards: Any) -> str:
        return self.statements.measure(wildcards.measure, wildcards.task, wildcards.shard).digest

    def measure_freely(self, wildcards: Any) -> str:
        return self.statements.freely(wildcards.measure).digest

    def table(self, wildcards: Any) -> str:
        return self.statements.table(wildcards.table).digest

    def figure(self, wildcards: Any) -> str:
        return self.statements.figure(wildcards.figure).digest

    def page(self, wildcards: Any) -> str:
        return self.statements.page().digest

    # Which job comes first: a long one that is left for the end runs alone.

    def train_priority(self, wildcards: Any) -> float:
        """Everything waits for networks."""
        cells = self.plan.shard(wildcards.task, wildcards.shard)
        return 3 + _long(sum(cell.cost.seconds for cell in cells))

    def measure_priority(self, wildcards: Any) -> float:
        cells, measure = self._measured(wildcards)
        return 1 + _long(len(cells) * measure.cost.get("seconds", SECONDS))

    # What a job needs.

    def train_minutes(self, wildcards: Any, attempt: int = 1) -> int:
        return self._minutes(wildcards) * min(attempt, MOST)

    def train_memory(self, wildcards: Any, attempt: int = 1) -> int:
        return self._memory(wildcards) * min(attempt, MOST)

    def measure_minutes(self, wildcards: Any, attempt: int = 1) -> int:
        """Three times the measure's COST per cell, and a quarter of an hour."""
        cells, measure = self._measured(wildcards)
        return (15 + math.ceil(3 * len(cells) * measure.cost.get("seconds", SECONDS) / 60)) * min(attempt, MOST)

    def measure_memory(self, wildcards: Any, attempt: int = 1) -> int:
        """The memory that the measure declares for a cell; otherwise as for training."""
        cells, measure = self._measured(wildcards)
        own = measure.cost.get("megabytes")
        if own is None or not cells:
            return self._memory(wildcards) * min(attempt, MOST)
        return (cost.PROCESS + SPARE + math.ceil(own)) * min(attempt, MOST)

    def _measured(self, wildcards: Any) -> tuple[list[Cell], MeasurePlan]:
        cells = self.plan.measured_cells(wildcards.measure, wildcards.task, wildcards.shard)
        return cells, self.plan.measure(wildcards.measure)

    def _minutes(self, wildcards: Any) -> int:
        """Three times the estimate and a quarter of an hour: it is a limit, and a machine may be slow or shared."""
        cells = self.plan.shard(wildcards.task, wildcards.shard)
        return 15 + math.ceil(3 * sum(cell.cost.seconds for cell in cells) / 60)

    def _memory(self, wildcards: Any) -> int:
        """Of the group of cells, which are alike and share stacks, that needs most."""
        cells = self.plan.shard(wildcards.task, wildcards.shard)
        members, most = Counter(cell.group for cell in cells), self.plan.config.compute.stack
        groups = {cell.group: cell for cell in cells}
        return max(stack_memory(cell, min(members[group], most)) for group, cell in groups.items())


def stack_memory(cell: Cell, members: int) -> int:
    """Megabytes of a job that trains so many members alike: the model's estimate and that of an empty job, or what was measured and a
    quarter more. A stack that is larger than any measured needs more than those did: the more of the two."""
    modelled = SPARE + cost.stack_megabytes(cell.task, cell.architecture, cell.training, members)
    measured = (cell.cost.megabytes or 0) * 5 // 4
    return measured if measured and members <= cell.cost.members else max(modelled, measured)


def _long(seconds: float) -> float:
    """Between 0 and 1, and the more the longer: kinds of jobs are whole numbers apart."""
    return seconds / (seconds + 3600)


def telling(function: Callable[[Any], list[str]], tell: Callable[[], None]) -> Callable[[Any], list[str]]:
    """An input function that tells Snakemake first what it cannot know: by then there is a graph of jobs to tell."""

    def inputs(wildcards: Any) -> list[str]:
        tell()
        return function(wildcards)

    return inputs


def check_paths(*lists: Iterable[str]) -> None:
    """Folders that go into PATH and PYTHONPATH, where a `:` would make two of one, and jobs import something else or nothing; and
    that Snakemake takes for patterns if they have braces.
    """
    for folder in (folder for one in lists for folder in one):
        for sign in (os.pathsep, "{", "}", "\n"):
            if sign in folder:
                raise RankfallError(
                    f"{folder!r}: jobs would not be found in a folder with {sign!r} in its name; move or rename it"
                )
