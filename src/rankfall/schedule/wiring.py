"""The plan as the workflow's rules want it: lists of files, and params that are plain strings.

Snakemake compares a rule's params as a set of their representations and shows those that changed as the reason for a rerun. So
each stage has

- one param that is a count and a digest of what the job makes (`"12 cells 3f0c..."`), and
- one param a source file that the job depends on, `"rankfall/nets/normalisers/l2.py 9a1b..."`.

What depends on wildcards is a function of them; a `params:` block takes the whole list by `*WIRING.train_params()`.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from rankfall.code.fingerprint import Sources
from rankfall.disk import atomic
from rankfall.plan import cost
from rankfall.plan.build import CELL_TABLES, Plan, make_plan
from rankfall.plan.cell import Cell, digest

Param = Callable[[Any], str]
Place = tuple[str, ...]  # values of a rule's wildcards
Code = Mapping[str, str]  # source file -> digest
TABLE_ROOTS = ("rankfall.report.tables",)  # what puts shards together, and checks them
MEASURED = 10  # seconds a cell, at most, for a measure of a small network
MOST = 3  # times what the first attempt may use; a job that was preempted often is no larger for that
ROW_ROOTS = ("rankfall.report.cell_columns",)  # what a shard's rows begin with


class Wiring:
    """All that the Snakefile asks for, for one configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.raw = dict(config)
        self.plan: Plan = make_plan(self.raw)
        self.results = self.plan.config.results

    def write_config(self) -> str:
        """The configuration as one file that all jobs read; left alone when it says the same, so that its time stands still."""
        path = Path(self.results) / "plan" / "config.json"
        text = json.dumps(self.raw, indent=1) + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            with atomic(path) as file:
                file.write(text.encode())
        return path.as_posix()

    # What there is.

    @property
    def tables(self) -> list[str]:
        return sorted({*CELL_TABLES, *self.plan.tables})

    @property
    def figures(self) -> list[str]:
        return sorted(self.plan.figures)

    def table_inputs(self, wildcards: Any) -> list[str]:
        """The shards of a table."""
        folder, table = f"{self.results}/shards", wildcards.table
        if table in ("cells", "training"):
            return [f"{folder}/train/{task}/{shard}.{table}.parquet" for task, shard in self.plan.shards]
        if table == "datasets":
            return [f"{folder}/data/{task}.parquet" for task in sorted({task for task, _ in self.plan.shards})]
        files = []
        for measure in self.plan.tables.get(table, []):
            if self.plan.measures[measure].needs == "cells":
                shards = [(t, s) for t, s in self.plan.shards if self.plan.measured_cells(measure, t, s)]
                files += [f"{folder}/measure/{measure}/{task}/{shard}.parquet" for task, shard in shards]
            else:
                files.append(f"{folder}/measure/{measure}.parquet")
        return files

    def free_measure_inputs(self, wildcards: Any) -> list[str]:
        """The tables that a measure of tables is computed from."""
        return [f"{self.results}/tables/{table}.parquet" for table in self.plan.measures[wildcards.measure].tables]

    def figure_inputs(self, wildcards: Any) -> list[str]:
        """The tables of a figure."""
        return [f"{self.results}/tables/{table}.parquet" for table in self.plan.figures[wildcards.figure].tables]

    def figure_category(self, wildcards: Any) -> str:
        """Where the report lists it: beside the other figures of the table that it mainly shows."""
        return self.plan.figures[wildcards.figure].tables[0].replace("_", " ")

    # What makes a job stale.

    def data_params(self) -> list[Param]:
        said: dict[Place, str] = {}
        code: dict[Place, Code] = {}
        for task in {cell.task.name for cell in self.plan.cells}:
            cells = [cell for cell in self.plan.cells if cell.task.name == task]
            keys = sorted({cell.data_key for cell in cells})
            said[task,] = f"{len(keys)} data sets {digest(keys)}"
            code[task,] = _together(cell.data_code for cell in cells) | self._table_code("datasets")
        return _params(("task",), said, code)

    def train_params(self) -> list[Param]:
        said: dict[Place, str] = {}
        code: dict[Place, Code] = {}
        tables = self._table_code("cells") | self._table_code("training")
        for place, cells in self.plan.shards.items():
            said[place] = f"{len(cells)} cells {self._rows(cells)}"
            code[place] = _together(cell.code for cell in cells) | tables
        return _params(("task", "shard"), said, code)

    def measure_params(self) -> list[Param]:
        said: dict[Place, str] = {}
        code: dict[Place, Code] = {}
        for name, measure in self.plan.measures.items():
            for task, shard in self.plan.shards:
                cells = self.plan.measured_cells(name, task, shard)
                said[name, task, shard] = f"{len(cells)} cells {digest(measure.key, self._rows(cells))}"
                code[name, task, shard] = {**measure.code, **self._table_code(measure.table)}
        return _params(("measure", "task", "shard"), said, code)

    def free_measure_params(self) -> list[Param]:
        """Of measures that need no trained cells."""
        said: dict[Place, str] = {}
        code: dict[Place, Code] = {}
        for name, measure in self.plan.measures.items():
            if measure.needs != "cells":
                said[name,] = measure.key
                code[name,] = {**measure.code, **self._table_code(measure.table)}
        return _params(("measure",), said, code)

    def table_params(self) -> list[Param]:
        code: dict[Place, Code] = {
            (table,): self._sources.code_files(TABLE_ROOTS) | self._table_code(table) for table in self.tables
        }
        return _params(("table",), {}, code)

    def figure_params(self) -> list[Param]:
        figures = self.plan.figures.values()
        said: dict[Place, str] = {(one.name,): digest(one.component.name, one.options) for one in figures}
        return _params(("figure",), said, {(one.name,): one.code for one in figures})

    def _table_code(self, table: str) -> dict[str, str]:
        return self._sources.code_files([*ROW_ROOTS, f"rankfall.report.schemas.{table}"])

    # What a job needs.

    def train_minutes(self, wildcards: Any, attempt: int = 1) -> int:
        return self._minutes(wildcards) * min(attempt, MOST)

    def train_memory(self, wildcards: Any, attempt: int = 1) -> int:
        return self._memory(wildcards) * min(attempt, MOST)

    def measure_minutes(self, wildcards: Any, attempt: int = 1) -> int:
        """As for training, and a while a cell: an untrained network costs nothing to train, but as much as any to measure."""
        cells = self.plan.measured_cells(wildcards.measure, wildcards.task, wildcards.shard)
        return (self._minutes(wildcards) + math.ceil(len(cells) * MEASURED / 60)) * min(attempt, MOST)

    def measure_memory(self, wildcards: Any, attempt: int = 1) -> int:
        return self._memory(wildcards) * min(attempt, MOST)

    def _minutes(self, wildcards: Any) -> int:
        """Three times the estimate and a quarter of an hour: it is a limit, and a machine may be slow or shared."""
        cells = self.plan.shard(wildcards.task, wildcards.shard)
        return 15 + math.ceil(3 * sum(cell.cost.seconds for cell in cells) / 60)

    def _memory(self, wildcards: Any) -> int:
        """What was measured and a quarter more, or what the model says on top of an empty job."""
        cells = self.plan.shard(wildcards.task, wildcards.shard)
        members = Counter(cell.group for cell in cells)
        modelled = {  # by group: its cells are alike, and share a stack
            cell.group: cost.MEGABYTES
            + min(members[cell.group], self.plan.config.compute.stack)
            * cost.member_megabytes(cell.task, cell.architecture, cell.training)
            for cell in {cell.group: cell for cell in cells}.values()
        }
        measured = {cell.group: cell.cost.megabytes * 5 // 4 for cell in cells if cell.cost.megabytes}
        return max((modelled | measured).values())

    @cached_property
    def _sources(self) -> Sources:
        return Sources()

    @cached_property
    def _specs(self) -> dict[tuple[int, int, int], str]:
        return {}

    def _rows(self, cells: Iterable[Cell]) -> str:
        """Digest of what the rows of these cells say: their keys, and specs with labels, which keys leave out."""
        found = []
        for cell in cells:
            parts: tuple[Any, ...] = (cell.task, cell.architecture, cell.training)
            ident = (id(cell.task), id(cell.architecture), id(cell.training))
            if ident not in self._specs:
                self._specs[ident] = digest(*(asdict(part) for part in parts))
            found.append((cell.key, self._specs[ident]))
        return digest(found)


def _together(codes: Iterable[Code]) -> dict[str, str]:
    """Code of several cells; many share one mapping."""
    found: dict[str, str] = {}
    for code in {id(code): code for code in codes}.values():
        found.update(code)
    return found


def _params(names: tuple[str, ...], said: Mapping[Place, str], code: Mapping[Place, Code]) -> list[Param]:
    """The first param from `said`, one more for each file that any of the jobs depends on."""

    def place(wildcards: Any) -> Place:
        return tuple(getattr(wildcards, name) for name in names)

    def of_file(file: str) -> Param:
        def param(wildcards: Any) -> str:
            here = place(wildcards)
            short = code.get(here, {}).get(file)
            # Elsewhere the first param once more, which adds nothing to the set that is compared: a component that only
            # other jobs use makes this one no staler by coming or going.
            return f"{file} {short}" if short else said.get(here, "")

        return param

    files = sorted({file for found in code.values() for file in found})
    return [lambda wildcards: said.get(place(wildcards), ""), *(of_file(file) for file in files)]
