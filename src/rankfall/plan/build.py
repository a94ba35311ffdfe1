"""From a configuration to the plan: cells with their keys, in shards; measures, tables and figures with their fingerprints."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rankfall import components
from rankfall.code.analyses import keep
from rankfall.code.files import files_of
from rankfall.code.fingerprint import Sources
from rankfall.code.loader import Text
from rankfall.config.looks import check_colours, check_labels
from rankfall.config.match import parse_filter
from rankfall.config.options import description
from rankfall.config.problems import problem, shown
from rankfall.config.types import Config, parse, read
from rankfall.design import Component
from rankfall.plan import uses
from rankfall.plan.cell import Cell, alike, digest
from rankfall.plan.cells import Costs, make_cells, module_of
from rankfall.plan.drawn import check_drawn
from rankfall.plan.grid import SECTIONS, Grid, resolved
from rankfall.plan.selection import select

MEASURE_ROOTS = {  # by what a measure needs, the modules that prepare its input; not those of jobs
    "cells": ("rankfall.measures._apply",),
    "nothing": ("rankfall.measures._context",),
    "tables": ("rankfall.measures._context",),
}
CELL_TABLES = ("cells", "training", "datasets")  # made of every benchmark, whatever is measured
BUILDER = "rankfall/nets/network.py"  # what assembles networks from components by name
NEEDS = ("cells", "nothing", "tables")


@dataclass(frozen=True)
class MeasurePlan:
    """A measure with what it depends on, beside the cells."""

    name: str
    component: Component
    table: str
    needs: str
    code: Mapping[str, str] = field(repr=False)
    fingerprint: str
    tables: tuple[str, ...] = ()  # those it is computed from, if it needs tables
    cost: Mapping[str, float] = field(default_factory=dict)  # of a cell: seconds, megabytes
    always: Mapping[str, str] = field(default_factory=dict, repr=False)  # of its code what no option in PARTS chooses

    @property
    def options(self) -> dict[str, Any]:
        return self.component.options

    @cached_property
    def key(self) -> str:
        """Everything but the cell."""
        return digest("measure", self.component.name, self.component.options, self.fingerprint)


@dataclass(frozen=True)
class FigurePlan:
    """A figure, the tables that it is drawn from, and its code."""

    name: str
    component: Component
    tables: tuple[str, ...]
    code: Mapping[str, str] = field(repr=False)
    fingerprint: str

    @property
    def options(self) -> dict[str, Any]:
        return self.component.options


@dataclass(frozen=True)
class Plan:
    """All that a configuration means."""

    config: Config
    cells: list[Cell]
    measures: dict[str, MeasurePlan]
    figures: dict[str, FigurePlan]
    selected: dict[str, frozenset[str]] = field(repr=False)  # measure -> keys of its cells
    texts: Mapping[str, Text] = field(repr=False, compare=False)  # module -> the source that was hashed
    labels: Mapping[str, str] = field(default_factory=dict)  # name -> what figures and page call it
    colours: Mapping[str, str] = field(default_factory=dict)  # name -> #rrggbb
    left_out: Mapping[str, Counter[str]] = field(
        default_factory=dict
    )  # measure -> why it cannot measure cells -> how many

    @cached_property
    def shards(self) -> dict[tuple[str, str], list[Cell]]:
        """(task, shard) -> cells."""
        found: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            found.setdefault((cell.task.name, cell.shard), []).append(cell)
        return dict(sorted(found.items()))

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """Measured table -> the measures that fill it."""
        found: dict[str, list[str]] = {}
        for measure in self.measures.values():
            found.setdefault(measure.table, []).append(measure.name)
        return dict(sorted(found.items()))

    def shards_of(self, task: str) -> list[str]:
        """The shards of a task."""
        known = [one for name, one in self.shards if name == task]
        if not known:
            raise problem("task", f"{task!r} has no cells", allowed=sorted({t for t, _ in self.shards}), given=task)
        return known

    def shard(self, task: str, shard: str) -> list[Cell]:
        """The cells of one job."""
        if (task, shard) not in self.shards:
            known = self.shards_of(task)
            hint = "if a run asked for it, the configuration, the code or measured costs changed since it was planned: run again"
            raise problem("shard", f"{shard!r} is not a shard of task {task!r}", allowed=known, hint=hint)
        return self.shards[task, shard]

    def measure(self, name: str) -> MeasurePlan:
        """A measure by its name in the configuration."""
        if name not in self.measures:
            raise problem("measure", f"{name!r} is not in the configuration", allowed=sorted(self.measures), given=name)
        return self.measures[name]

    def figure(self, name: str) -> FigurePlan:
        """A figure by its name in the configuration."""
        if name not in self.figures:
            raise problem("figure", f"{name!r} is not in the configuration", allowed=sorted(self.figures), given=name)
        return self.figures[name]

    def measure_key(self, measure: str, cell: Cell | None = None) -> str:
        """What the rows of a measure on a cell are kept under; without a cell for a measure that needs none."""
        return digest(self.measures[measure].key, cell.key if cell else None)

    def measured_cells(self, measure: str, task: str, shard: str) -> list[Cell]:
        """The cells of a shard that a measure is for."""
        return [cell for cell in self.shard(task, shard) if cell.key in self.selected[measure]]

    def origin(self, cell: Cell) -> dict[str, Any]:
        """What to record with a cell's result, so that a later plan can say why it is stale."""
        return {
            "spec": cell.spec,
            "data_key": cell.data_key,
            "code": dict(cell.code),
            "labels": list(cell.labels),
            "seed": cell.seed,
            "content": cell.content,
        }


def make_plan(source: Mapping[str, Any] | str | Path) -> Plan:
    """The plan of a configuration: a mapping, or the path of a YAML or JSON file."""
    written = parse(read(source))
    config = resolved(written)
    labels, colours = check_labels(written), check_colours(written)
    sources = Sources()
    measures = _fed({name: _measure(config, name, sources) for name in config.measures})
    filters = {name: entry.cells for name, entry in config.measures.items()}
    cells = make_cells(Grid(config).series(), config.compute, sources, _costs(measures, filters))
    selected, left_out = select(measures, filters, cells)
    for name, figure in written.figures.items():
        _check_labels(config, figure.component.options, f"figures.{name}")
    figures = {name: _figure(config, name, sources, measures.values()) for name in config.figures}
    grid = list(alike(cells)) if figures else []
    for one in figures.values():
        check_drawn(one, measures.values(), grid, selected)
    keep()
    return Plan(config, cells, measures, figures, selected, sources.texts, labels, colours, left_out)


def _measure(config: Config, name: str, sources: Sources) -> MeasurePlan:
    component, path = config.measures[name].component, f"measures.{name}"
    facts = _facts("measure", component, path)
    table, needs = facts.get("TABLE"), facts.get("NEEDS", "cells")
    if table not in components.names("table"):
        raise problem(
            path, f"its component says TABLE = {shown(table)}", allowed=components.names("table"), given=table
        )
    if needs not in NEEDS:
        raise problem(path, f"its component says NEEDS = {shown(needs)}", allowed=NEEDS, given=needs)
    roots = [module_of("measure", component), *MEASURE_ROOTS[needs]]
    files = files_of("measure", component, path)
    if "BUILDS" in facts and needs != "nothing":
        raise problem(
            path,
            "its component says what it BUILDS networks of, but its networks are those of cells",
            hint="leave it out",
        )
    always: dict[str, str] = {}
    if needs != "cells":  # the parts of a cell are in the cell's own key
        builds = "BUILDS" not in facts and BUILDER in sources.code_files(roots)
        roots, files = _with(roots, files, uses.always(component.options, facts, path), path)
        always, _ = _code(sources, roots, files)
        roots, files = _with(roots, files, uses.chosen(component.options, facts, builds), path)
    code, fingerprint = _code(sources, roots, files)
    wanted = _tables(facts, path) if needs == "tables" else ()
    return MeasurePlan(name, component, table, needs, code, fingerprint, wanted, facts.get("COST", {}), always)


def _with(
    roots: list[str], files: Mapping[str, str], some: Iterable[tuple[str, Component]], path: str
) -> tuple[list[str], dict[str, str]]:
    """Modules and files, and those of some components."""
    both = list(some)
    more = {name: content for kind, part in both for name, content in files_of(kind, part, path).items()}
    return [*roots, *(module_of(kind, part) for kind, part in both)], {**files, **more}


def _fed(measures: dict[str, MeasurePlan]) -> dict[str, MeasurePlan]:
    """Measures of tables, with those of their tables that this run makes; not tables of one another, so that there are no cycles."""
    made = {*CELL_TABLES, *(measure.table for measure in measures.values() if measure.needs != "tables")}
    return {
        name: replace(measure, tables=tuple(table for table in measure.tables if table in made))
        for name, measure in measures.items()
    }


def _costs(measures: Mapping[str, MeasurePlan], filters: Mapping[str, Mapping[str, Any]]) -> list[Costs]:
    """Of the measures of cells whose files declare a COST."""
    return [
        (parse_filter(filters[name], f"measures.{name}.cells") if filters[name] else {}, measure.cost["seconds"])
        for name, measure in measures.items()
        if measure.needs == "cells" and "seconds" in measure.cost
    ]


def _code(sources: Sources, roots: list[str], files: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Digests by file and altogether: of the code that the roots import, and of other files."""
    code, fingerprint = {**sources.code_files(roots), **files}, sources.fingerprint(roots)
    return code, digest(fingerprint, files) if files else fingerprint


def _figure(config: Config, name: str, sources: Sources, measures: Iterable[MeasurePlan]) -> FigurePlan:
    component, path = config.figures[name].component, f"figures.{name}"
    facts = _facts("figure", component, path)
    if "USES" in facts:
        raise problem(
            path,
            "its component says what it USES of a network, but a figure is drawn from tables",
            hint="say it in the measure",
        )
    made = [*CELL_TABLES, *sorted({measure.table for measure in measures})]
    tables = _tables(facts, path)
    for table in tables:
        if table not in made:
            raise problem(
                path, f"it is drawn from table {table!r}, which no measure of this configuration makes", allowed=made
            )
    files = files_of("figure", component, path)
    return FigurePlan(name, component, tables, *_code(sources, [module_of("figure", component)], files))


def _tables(facts: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """What a measure of tables or a figure reads."""
    declared = components.names("table")
    for table in facts.get("TABLES", ()):
        if table not in declared:
            raise problem(path, f"its component says TABLES = [{shown(table)}]", allowed=declared, given=table)
    if not facts.get("TABLES"):
        raise problem(path, "its component does not say which TABLES it reads", allowed=declared)
    return tuple(facts["TABLES"])


def _check_labels(config: Config, options: Mapping[str, Any], path: str) -> None:
    """Raise if a figure's options name something that the grid does not have; otherwise the figure would fail hours later."""
    for label, section in SECTIONS.items():
        known = getattr(config, section)
        for option in {label, section} & options.keys():
            for item in uses.listed(options[option]):
                if isinstance(item, str) and item not in known:
                    what = f"{item!r} is not one of the {section}"
                    raise problem(f"{path}.{option}", what, allowed=sorted(known), given=item)


def _facts(kind: str, component: Component, path: str) -> Mapping[str, Any]:
    found = description(kind, component.name, path)
    return found.facts if found else {}
