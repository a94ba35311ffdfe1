"""Fingerprints of jobs: what each job of a plan makes, in words, as a digest, and as the files of code that it depends on.

The digest covers all that the rows or the picture depend on: the keys and labels of the cells, the measure with its options and its
code, the code that writes tables; and for outputs made from other files, the digests of those. So it is known before anything runs, and

- a job is given the planned digest, and stops if its own differs;
- every output keeps its digest, so that whether it is up to date follows from its content, and not from times or from Snakemake's records
  (`up_to_date.py`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

import rankfall
from rankfall import components
from rankfall.design import Architecture, Task, Training
from rankfall.errors import RankfallError
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.build import CELL_TABLES, Plan
from rankfall.run.plan.cell import Cell, alike, digest, digest_of
from rankfall.run.plan.entries import find_quantity_modules
from rankfall.run.snakemake.lookups import ShardJob
from rankfall.run.snakemake.outputs import Outputs

P = ParamSpec("P")
Code = Mapping[str, str]  # source file -> digest
TABLE_ROOTS = ("rankfall.report.tables",)  # the code that combines shards and checks tables
PAGE_ROOTS = ("rankfall.report.page.build", "rankfall.report.provenance")  # the code of the page
CEILING_ROOTS = (
    "rankfall.position.attainable",
)  # the code of a column of cells, beside the tasks, which are in their keys
ROW_ROOTS = ("rankfall.report.rows", "rankfall.report.conform")  # the code by which a job's rows become a file


@dataclass(frozen=True)
class JobFingerprint:
    """What one job makes."""

    what: str
    digest: str
    files: Callable[[], Code] = field(repr=False, compare=False)  # computed only when a difference has to be explained

    def check(self, expected: str | None, job: str) -> None:
        """An error if the job's digest is not the planned one."""
        if expected is not None and expected != self.digest:
            raise RankfallError(
                f"{job}: the configuration or the code changed since this run was planned; nothing was written, run again"
            )

    def record(self) -> dict[str, str]:
        """What an output keeps of it: text, for the metadata of a table."""
        return {"made": self.digest, "made_of": json.dumps({"what": self.what, "code": dict(self.files())})}


@dataclass(frozen=True)
class Part:
    """A file that a table is combined from."""

    path: str
    table: str
    fingerprint: JobFingerprint
    job: ShardJob | None = None  # that makes it, if its rows are of a shard's networks
    cells: Callable[[], Iterable[str]] | None = field(
        default=None, repr=False, compare=False
    )  # their keys; None: of no cells

    @property
    def made(self) -> str:
        return self.fingerprint.digest

    @cached_property
    def keys(self) -> frozenset[str] | None:
        """Of the cells that it may have rows of. Nobody asks who only wants to know what is made of what."""
        return None if self.cells is None else frozenset(self.cells())


Make = Callable[Concatenate["JobFingerprints", P], JobFingerprint]


def once(make: Make[P]) -> Make[P]:
    """Of each job its fingerprint is made when it is first asked for."""

    @wraps(make)
    def ask(self: "JobFingerprints", *place: P.args, **named: P.kwargs) -> JobFingerprint:
        job = (make.__name__, *place, *named.values())
        if job not in self._made:
            self._made[job] = make(self, *place, **named)
        return self._made[job]

    return ask


class JobFingerprints:
    """The fingerprints of one plan; each is made when it is asked for."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._made: dict[tuple[object, ...], JobFingerprint] = {}
        self._specs: dict[int, str] = {}  # by identity: the plan keeps them all
        self._row_codes: dict[str, dict[str, str]] = {}

    @property
    def tables(self) -> list[str]:
        return sorted({*CELL_TABLES, *self.plan.tables})

    @once
    def data(self, task: str) -> JobFingerprint:
        """The data sets of a task."""
        cells = [cell for shard in self.plan.shards_of(task) for cell in self.plan.shard(task, shard)]
        keys, rows = sorted({cell.data_key for cell in cells}), self._table_code("datasets")
        files = partial(_merge, [*_distinct(cell.data_code for cell in cells), rows])
        return JobFingerprint(f"{len(keys)} data sets", digest("data", task, keys, rows), files)

    @once
    def train(self, task: str, shard: str) -> JobFingerprint:
        """The cells of a shard."""
        cells = self.plan.shard(task, shard)
        ceiling = self._sources.code_files(CEILING_ROOTS)
        rows = _merge([self._table_code("cells"), self._table_code("training"), ceiling])
        files = partial(_merge, [*_distinct(cell.code for cell in cells), rows])
        return JobFingerprint(f"{len(cells)} cells", digest("train", self._rows(cells), rows), files)

    @once
    def measure(self, name: str, task: str, shard: str) -> JobFingerprint:
        """A measure on the cells of a shard."""
        measure, cells = self.plan.measure(name), self.plan.measured_cells(name, task, shard)
        rows = self._table_code(measure.table)
        files = partial(_merge, [measure.code, rows])
        return JobFingerprint(f"{len(cells)} cells", digest("measure", measure.key, self._rows(cells), rows), files)

    def of(self, job: ShardJob) -> JobFingerprint:
        """The job of a shard, whichever it is."""
        return self.measure(job.measure, *job.place) if job.measure else self.train(*job.place)

    def lookup(self, jobs: Iterable[ShardJob]) -> JobFingerprint:
        """The tables of many such jobs, which have nothing to compute."""
        made = [(*job, self.of(job).digest) for job in sorted(jobs)]
        return JobFingerprint(f"{len(made)} jobs", digest("lookup", made), dict)

    @once
    def freely(self, name: str) -> JobFingerprint:
        """A measure that needs no trained cells: of nothing, or of tables."""
        measure = self.plan.measure(name)
        rows, given = self._table_code(measure.table), [self.table(table).digest for table in measure.tables]
        what = f"{len(given)} tables" if given else "itself alone"
        files = partial(_merge, [measure.code, rows])
        return JobFingerprint(what, digest("measure", measure.key, given, rows), files)

    @once
    def table(self, name: str) -> JobFingerprint:
        """A table of the results."""
        code = _merge([self._sources.code_files(TABLE_ROOTS), self._table_code(name)])
        made = [part.made for part in self.parts(name, Outputs(""))]
        return JobFingerprint(f"{len(made)} files", digest("table", name, made, code), lambda: code)

    @once
    def figure(self, name: str) -> JobFingerprint:
        """A picture with its caption."""
        figure = self.plan.figure(name)
        given = [self.table(table).digest for table in figure.tables]
        looks = [self.plan.labels, self.plan.colours]
        content = digest("figure", figure.component.name, figure.options, figure.fingerprint, given, looks)
        return JobFingerprint(f"{len(given)} tables", content, lambda: figure.code)

    @once
    def page(self) -> JobFingerprint:
        """The page of all tables; figures are linked from it, with their captions."""
        found = find_quantity_modules({"FINDS": [*components.LISTS]}, self.plan.modules)
        code = self._sources.code_files([*PAGE_ROOTS, *found]) | page_files()
        given = [self.table(table).digest for table in self.tables]
        drawn = [self.figure(figure).digest for figure in sorted(self.plan.figures)]
        what = f"{len(given)} tables and {len(drawn)} figures"
        said = [self.plan.config.name, self.plan.labels, self.plan.colours]
        return JobFingerprint(what, digest("page", said, given, drawn, sorted(self.plan.figures), code), lambda: code)

    def parts(self, table: str, outputs: Outputs) -> list[Part]:
        """The files that a table is combined from."""
        if table not in self.tables:
            raise RankfallError(f"table {table!r} is not of this configuration; allowed: {', '.join(self.tables)}")
        if table in ("cells", "training"):
            file = outputs.cells if table == "cells" else outputs.training
            shards = self.plan.shards.items()
            return [
                Part(file(*place), table, self.train(*place), ShardJob(*place), partial(_keys, cells))
                for place, cells in shards
            ]
        if table == "datasets":
            return [
                Part(outputs.data(task), table, self.data(task))
                for task in sorted({task for task, _ in self.plan.shards})
            ]
        return [part for name in self.plan.tables[table] for part in self._measure_parts(name, table, outputs)]

    def _measure_parts(self, name: str, table: str, outputs: Outputs) -> Iterator[Part]:
        if self.plan.measures[name].needs != "cells":
            yield Part(outputs.freely(name), table, self.freely(name))
            return
        for place in self.plan.shards:
            cells = self.plan.measured_cells(name, *place)
            if cells:
                job = ShardJob(*place, name)
                yield Part(outputs.measure_shard(name, *place), table, self.of(job), job, partial(_keys, cells))

    @cached_property
    def _sources(self) -> Sources:
        return Sources()

    def _table_code(self, table: str) -> dict[str, str]:
        if table not in self._row_codes:
            declared = components.describe("table", table)
            assert declared is not None
            found = find_quantity_modules(declared.facts, self.plan.modules)
            self._row_codes[table] = self._sources.code_files([*ROW_ROOTS, declared.location.module, *found])
        return self._row_codes[table]

    def _rows(self, cells: Sequence[Cell]) -> str:
        """Digest of what the rows of these cells say: their keys, and specs with labels, which keys leave out. It is that of a list of
        [key, task, architecture, training], put together as text: there may be a million of them.
        """
        rows = []
        for some in alike(cells):
            end = "".join(f',"{self._digest_of(part)}"' for part in (some.task, some.architecture, some.training))
            rows += [f'["{cell.key}"{end}]' for cell in some.cells]
        return digest_of(f"[[{','.join(rows)}]]")

    def _digest_of(self, part: Task | Architecture | Training) -> str:
        """Digest of all that an entry says; most cells share theirs."""
        if id(part) not in self._specs:
            self._specs[id(part)] = digest(asdict(part))
        return self._specs[id(part)]


def page_files() -> dict[str, str]:
    """What the page has of its own beside code: its text, script and style."""
    folder = Path(rankfall.__file__).parent / "report" / "page"
    names = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".js", ".css"))
    return {
        f"rankfall/report/page/{path.relative_to(folder).as_posix()}": hashlib.sha256(path.read_bytes()).hexdigest()[
            :12
        ]
        for path in names
    }


def _keys(cells: Iterable[Cell]) -> Iterator[str]:
    return (cell.key for cell in cells)


def _distinct(codes: Iterable[Code]) -> list[Code]:
    """The codes of the cells, each once: cells of one kind share theirs."""
    return list({id(code): code for code in codes}.values())


def _merge(codes: Iterable[Code]) -> dict[str, str]:
    """Join several mappings into one."""
    found: dict[str, str] = {}
    for code in codes:
        found.update(code)
    return dict(sorted(found.items()))
