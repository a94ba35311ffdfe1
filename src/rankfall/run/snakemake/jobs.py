"""Name the jobs of a plan and their files. The name of a file contains the digest of everything that the file depends on:

    results/work/measure/residuals/sorting/0-31.10/3fa9c1d2....parquet
    results/logs/measure/residuals/sorting/0-31.10/3fa9c1d2....log

So a file that exists is never stale. The digest covers the keys and labels of the cells, the measure with its options and code, and the
code that writes tables. If a job reads files of other jobs, it also covers their digests. Before a job starts, it computes its digest from
the current configuration and sources, and stops if the digest differs from the planned one.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import rankfall
from rankfall import components
from rankfall.design import Architecture, Task, Training
from rankfall.errors import RankfallError
from rankfall.quantity_files import LISTS
from rankfall.report.style import FORMATS
from rankfall.run.keys import COLUMNS, table_digests
from rankfall.run.plan.build import CELL_TABLES, Plan
from rankfall.run.plan.cell import Cell, alike, digest, digest_of
from rankfall.run.plan.entries import find_quantity_modules
from rankfall.sources.fingerprint import Sources

Code = Mapping[str, str]  # source file -> digest
TABLE_ROOTS = ("rankfall.report.tables",)  # code that combines shards and checks tables
PAGE_ROOTS = ("rankfall.report.page.build", "rankfall.report.provenance")  # code of the page
CEILING_ROOTS = ("rankfall.position.attainable",)  # code of a column of cells; that of tasks is in the keys of cells
ROW_ROOTS = ("rankfall.report.rows", "rankfall.report.conform")  # code that writes a job's rows to a file
KINDS = ("data", "train", "measure", "table", "figure", "page")  # kinds of jobs, and the folders under work/ and logs/
SUFFIXES = {  # kind of job -> suffixes of its files; all other kinds have `.parquet`
    "train": (".cells.parquet", ".training.parquet"),
    "figure": tuple(f".{kind}" for kind in (*FORMATS, "rst")),
    "page": (".html",),
}


@dataclass(frozen=True)
class PlannedJob:
    """A job: its kind, the names that identify it among jobs of its kind, and the inputs and code of its files."""

    key: str  # kind/name/..., such as train/sorting/0, measure/paths/sorting/0, measure/orders, table/cells, page
    digest: str
    summary: str  # its inputs in words, such as "32 cells"
    inputs: tuple[str, ...] = ()  # input files, relative to the folder of results
    code: Code = field(default_factory=dict, repr=False, compare=False)

    @property
    def kind(self) -> str:
        return self.key.partition("/")[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.key.split("/")[1:])

    @property
    def rule(self) -> str:
        """Return the rule of the workflow. A measure that needs no cells has its own rule."""
        return "measure_freely" if self.kind == "measure" and len(self.names) == 1 else self.kind

    @property
    def files(self) -> list[str]:
        """Return the output files, relative to the folder of results."""
        return [f"work/{self.key}/{self.digest}{suffix}" for suffix in SUFFIXES.get(self.kind, (".parquet",))]

    @property
    def log(self) -> str:
        return f"logs/{self.key}/{self.digest}.log"

    def check(self, expected: str | None) -> None:
        """Raise if a run planned this job with another digest."""
        if expected is not None and expected != self.digest:
            raise RankfallError(
                f"{self.key.replace('/', ' ')}: the configuration or the code changed since this run was planned; "
                f"nothing was written, run again"
            )


class PlanJobs:
    """The jobs of a plan, each created at its first use."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._jobs: dict[str, PlannedJob] = {}
        self._specs: dict[int, str] = {}  # identity of an entry -> digest; the plan keeps all entries alive
        self._row_codes: dict[str, dict[str, str]] = {}

    @property
    def tables(self) -> list[str]:
        return sorted({*CELL_TABLES, *self.plan.tables})

    @property
    def all_jobs(self) -> list[PlannedJob]:
        """Return all jobs of the plan, each after the jobs whose files it reads."""
        if self.plan.config.page:
            self.job("page")
        for name in self.tables:
            self.job("table", name)
        for name in sorted(self.plan.figures):
            self.job("figure", name)
        for task, shard in self.plan.shards:
            self.job("train", task, shard)
        return list(self._jobs.values())  # a job is created after those that it needs

    def job(self, kind: str, *names: str) -> PlannedJob:
        """Return the job of this kind with these names."""
        key = "/".join((kind, *names))
        if key not in self._jobs:
            make = self._measure_freely if kind == "measure" and len(names) == 1 else getattr(self, f"_{kind}")
            self._jobs[key] = make(key, *names)
        return self._jobs[key]

    def final_files(self) -> dict[str, str]:
        """Return published file -> the work file that it copies, both relative to the folder of results."""
        tables = {f"tables/{name}.parquet": self.job("table", name).files[0] for name in self.tables}
        figures = {
            f"figures/{name}{suffix}": file
            for name in sorted(self.plan.figures)
            for suffix, file in zip(SUFFIXES["figure"], self.job("figure", name).files)
        }
        page = {"report/index.html": self.job("page").files[0]} if self.plan.config.page else {}
        return tables | figures | page

    # Digest and inputs of each kind of job.

    def _data(self, key: str, task: str) -> PlannedJob:
        """Return the job that draws the data sets of a task."""
        cells = [cell for (name, _), shard_cells in self.plan.shards.items() if name == task for cell in shard_cells]
        data_keys, rows = sorted({cell.data_key for cell in cells}), self._table_code("datasets")
        code = _merge([*(cell.data_code for cell in cells), rows])
        return PlannedJob(key, digest("data", task, data_keys, rows), f"{len(data_keys)} data sets", code=code)

    def _train(self, key: str, task: str, shard: str) -> PlannedJob:
        """Return the job that trains a shard."""
        cells = self.plan.shards[task, shard]
        ceiling = self._sources.code_files(CEILING_ROOTS)
        rows = _merge([self._table_code("cells"), self._table_code("training"), ceiling])
        code = _merge([*(cell.code for cell in cells), rows])
        # The keys of the cells cover the data. The file of data sets is an input, so that a faulty data set fails one job and not all.
        inputs = (self.job("data", task).files[0],)
        return PlannedJob(key, digest("train", self._digest_rows(cells), rows), f"{len(cells)} cells", inputs, code)

    def _measure(self, key: str, name: str, task: str, shard: str) -> PlannedJob:
        """Return the job that measures the cells of a shard."""
        measure, cells = self.plan.measures[name], self.plan.measured_cells(name, task, shard)
        rows = self._table_code(measure.table)
        code = _merge([measure.code, rows])
        inputs = (self.job("train", task, shard).files[0],)
        job_digest = digest("measure", measure.key, self._digest_rows(cells), rows)
        return PlannedJob(key, job_digest, f"{len(cells)} cells", inputs, code)

    def _measure_freely(self, key: str, name: str) -> PlannedJob:
        """Return the job of a measure that needs no cells. It reads tables or nothing."""
        measure = self.plan.measures[name]
        rows, tables = self._table_code(measure.table), [self.job("table", table) for table in measure.tables]
        summary = f"{len(tables)} tables" if tables else "itself alone"
        job_digest = digest("measure", measure.key, [table.digest for table in tables], rows)
        code = _merge([measure.code, rows])
        return PlannedJob(key, job_digest, summary, tuple(table.files[0] for table in tables), code)

    def _table(self, key: str, name: str) -> PlannedJob:
        """Return the job that combines the files of a table."""
        code = _merge([self._sources.code_files(TABLE_ROOTS), self._table_code(name), table_digests(name)])
        parts = self._table_parts(name)
        inputs = tuple(part.files[name == "training"] for part in parts)
        job_digest = digest("table", name, [part.digest for part in parts], code)
        return PlannedJob(key, job_digest, f"{len(parts)} files", inputs, code)

    def _figure(self, key: str, name: str) -> PlannedJob:
        """Return the job that draws a figure."""
        figure = self.plan.figures[name]
        tables = [self.job("table", table) for table in figure.tables]
        looks = [self.plan.labels, self.plan.colours]
        digests = [table.digest for table in tables]
        job_digest = digest("figure", figure.component.name, figure.options, figure.fingerprint, digests, looks)
        inputs = tuple(table.files[0] for table in tables)
        return PlannedJob(key, job_digest, f"{len(tables)} tables", inputs, figure.code)

    def _page(self, key: str) -> PlannedJob:
        """Return the job of the page, which shows all tables and links the figures with their captions."""
        modules = find_quantity_modules({"FINDS": [*LISTS]}, self.plan.modules)
        code = self._sources.code_files([*PAGE_ROOTS, *modules]) | page_files()
        tables = [self.job("table", table) for table in self.tables]
        figures = [self.job("figure", figure) for figure in sorted(self.plan.figures)]
        text = [self.plan.config.name, self.plan.labels, self.plan.colours]
        digests = [[job.digest for job in jobs] for jobs in (tables, figures)]
        job_digest = digest("page", text, *digests, sorted(self.plan.figures), code)
        summary = f"{len(tables)} tables and {len(figures)} figures"
        inputs = tuple(job.files[-1] for job in (*tables, *figures))  # the last file of a figure is its caption
        return PlannedJob(key, job_digest, summary, inputs, code)

    def _table_parts(self, table: str) -> list[PlannedJob]:
        """Return the jobs whose files a table combines."""
        if table in ("cells", "training"):
            return [self.job("train", *shard) for shard in self.plan.shards]
        if table == "datasets":
            return [self.job("data", task) for task in sorted({task for task, _ in self.plan.shards})]
        parts = []
        for name in self.plan.tables[table]:
            free = self.plan.measures[name].needs != "cells"
            shards = [()] if free else [shard for shard in self.plan.shards if self.plan.measured_cells(name, *shard)]
            parts += [self.job("measure", name, *shard) for shard in shards]
        return parts

    @cached_property
    def _sources(self) -> Sources:
        return Sources()

    def _table_code(self, table: str) -> dict[str, str]:
        """Return the digests of the code that writes rows of a table, and of the table's declaration."""
        if table not in self._row_codes:
            declared = components.describe_columns(table)
            if declared is not None and declared.table is None:  # its columns are those of headlines
                modules = find_quantity_modules(declared.facts, self.plan.modules)
                self._row_codes[table] = self._sources.code_files([*ROW_ROOTS, declared.location.module, *modules])
            else:
                digests = table_digests(table)
                columns = {name: value for name, value in digests.items() if name.startswith(COLUMNS)}
                self._row_codes[table] = {**self._sources.code_files(ROW_ROOTS), **columns}
        return self._row_codes[table]

    def _digest_rows(self, cells: Sequence[Cell]) -> str:
        """Return the digest of a list of [key, task, architecture, training] of the cells.

        Keys omit labels, so the entries are included. The list is written as text for speed, since there may be a million cells.
        """
        rows = []
        for series in alike(cells):
            end = "".join(
                f',"{self._digest_spec(part)}"' for part in (series.task, series.architecture, series.training)
            )
            rows += [f'["{cell.key}"{end}]' for cell in series.cells]
        return digest_of(f"[[{','.join(rows)}]]")

    def _digest_spec(self, part: Task | Architecture | Training) -> str:
        """Return the digest of all fields of an entry. Most cells share their entries."""
        if id(part) not in self._specs:
            self._specs[id(part)] = digest(asdict(part))
        return self._specs[id(part)]


def page_files() -> dict[str, str]:
    """Return the digests of the page's text, scripts and style."""
    folder = Path(rankfall.__file__).parent / "report" / "page"
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".js", ".css"))
    digests = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return {f"rankfall/report/page/{name}": digest[:12] for name, digest in digests.items()}


def _merge(codes: Iterable[Code]) -> dict[str, str]:
    """Merge several mappings into one. Cells with equal code share one object."""
    merged: dict[str, str] = {}
    for code in {id(code): code for code in codes}.values():
        merged.update(code)
    return dict(sorted(merged.items()))
