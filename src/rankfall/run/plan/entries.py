"""Plan measures and figures, each with the code that it depends on besides that of the cells."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rankfall import components
from rankfall.components import facts_of, module_of
from rankfall.design import PLAIN, Architecture, Component, parts
from rankfall.errors import RankfallError
from rankfall.filters import as_list
from rankfall.modules import find_module
from rankfall.report.quantities import sources as sources_of
from rankfall.run.config.problems import problem, show_value
from rankfall.run.config.types import Config
from rankfall.run.keys import data_of, files_of
from rankfall.run.plan.cell import digest
from rankfall.sources.fingerprint import Sources

MEASURE_ROOTS = {  # needs of a measure -> modules that prepare its input, without jobs
    "cells": ("rankfall.measure.apply",),
    "nothing": ("rankfall.measure.context",),
    "tables": ("rankfall.measure.context",),
}
CELL_TABLES = ("cells", "training", "datasets")  # tables of every benchmark, whatever is measured
BUILDER = "rankfall/nets/network.py"  # the file that assembles networks from components by name
DOTTED = re.compile(r"\w+(\.\w+)*:\w+")
Parts = Iterable[tuple[str, Component]]  # kind, component


@dataclass(frozen=True)
class FigurePlan:
    """A figure, the tables from which it is drawn, and its code."""

    name: str
    component: Component
    tables: tuple[str, ...]
    code: Mapping[str, str] = field(repr=False)
    fingerprint: str

    @property
    def options(self) -> dict[str, Any]:
        return self.component.options


@dataclass(frozen=True)
class MeasurePlan(FigurePlan):
    """A measure, the tables from which it is computed, and its code besides that of cells."""

    table: str  # that it fills
    needs: str
    cost: Mapping[str, float]  # per cell: seconds, megabytes
    always: Mapping[str, str] = field(repr=False)  # code that no option in PARTS chooses

    @cached_property
    def key(self) -> str:
        """The hash of everything except the cell."""
        return digest("measure", self.component.name, self.component.options, self.fingerprint)


class EntryPlans:
    """A planner of the measures and figures of a configuration with resolved components."""

    def __init__(self, config: Config, sources: Sources) -> None:
        self.config, self.sources = config, sources
        self.modules = modules_of(config)
        self.table_of = {name: self._find_table(name) for name in config.measures}
        self.needs = {
            name: facts_of("measure", entry.component.name).get("NEEDS", "cells")
            for name, entry in config.measures.items()
        }
        self.tables = {*CELL_TABLES, *self.table_of.values()}

    def measure(self, name: str) -> MeasurePlan:
        """Plan a measure."""
        component, path, needs = self.config.measures[name].component, f"measures.{name}", self.needs[name]
        facts = facts_of("measure", component.name)
        roots = [
            module_of("measure", component),
            *MEASURE_ROOTS[needs],
            *find_quantity_modules(facts, self.modules),
        ]
        files = files_of("measure", component, path) | self._files_found_by(facts, path)
        always: Mapping[str, str] = {}
        used: list[tuple[str, Component]] = []
        if needs != "cells":  # the parts of a cell are in the cell's key
            builds = "BUILDS" not in facts and BUILDER in self.sources.code_files(roots)
            used += parts_always(component.options, facts, path)
            always, _ = self._code(roots, files, used, path)
            used += parts_chosen(component.options, facts, builds)
        read = self._read_tables(facts, path) if needs == "tables" else []
        read += sorted({table for kind in facts.get("FINDS", ()) for table in sources_of(kind, self.modules)})
        tables = tuple(table for table in dict.fromkeys(read) if table in self._tables_for_measures)
        code = self._code(roots, files, used, path)
        return MeasurePlan(name, component, tables, *code, self.table_of[name], needs, facts.get("COST", {}), always)

    def figure(self, name: str) -> FigurePlan:
        """Plan a figure."""
        component, path = self.config.figures[name].component, f"figures.{name}"
        facts = facts_of("figure", component.name)
        tables = self._read_tables(facts, path)
        for table in tables:
            if table not in self.tables:
                fault = f"it is drawn from table {table!r}, which no measure of this configuration makes"
                raise problem(path, fault, allowed=sorted(self.tables))
        files = files_of("figure", component, path) | self._files_found_by(facts, path)
        roots = [module_of("figure", component), *find_quantity_modules(facts, self.modules)]
        return FigurePlan(name, component, tuple(tables), *self._code(roots, files, (), path))

    def _find_table(self, name: str) -> str:
        """Return the table that a measure fills, from the declaration in its file."""
        component, path = self.config.measures[name].component, f"measures.{name}"
        facts = facts_of("measure", component.name)
        if "TABLE" not in facts and ":" in component.name:
            module = component.name.partition(":")[0]
            raise problem(
                path, f"{component.name!r} names a function", hint=f"a measure is named by its module: {module}"
            )
        return _check_table(facts.get("TABLE"), path, "TABLE = {}")

    @cached_property
    def _tables_for_measures(self) -> set[str]:
        """The tables that measures of tables may read.

        Among tables of such measures, these are only those computed from tables of cells, so that there are no cycles."""
        tables = {*CELL_TABLES}
        for name, entry in self.config.measures.items():
            facts = facts_of("measure", entry.component.name)
            if self.needs[name] != "tables" or ({*facts.get("TABLES", ())} <= tables and not facts.get("FINDS")):
                tables.add(self.table_of[name])
        return tables

    def _read_tables(self, facts: Mapping[str, Any], path: str) -> list[str]:
        """Return the tables that a measure of tables or a figure reads."""
        if not facts.get("TABLES"):
            fault = "its component does not say which TABLES it reads"
            raise problem(path, fault, allowed=components.names("table"))
        return [_check_table(table, path, "TABLES = [{}]") for table in facts["TABLES"]]

    def _files_found_by(self, facts: Mapping[str, Any], path: str) -> dict[str, str]:
        """Return the files (DATA) of the declarations that a component FINDS, with their digests."""
        declared = [(kind, name) for kind in facts.get("FINDS", ()) for name in sources_of(kind, self.modules)]
        files = (data_of(kind, name, f"{path} ({kind} of {name})") for kind, name in declared)
        return {file: content for digests in files for file, content in digests.items()}

    def _code(self, roots: list[str], files: Mapping[str, str], used: Parts, path: str) -> tuple[dict[str, str], str]:
        """Return the digests of the code that roots and components import, and of their files, by file and combined."""
        used = list(used)
        roots = [*roots, *(module_of(kind, part) for kind, part in used)]
        for kind, part in used:
            files = {**files, **files_of(kind, part, path)}
        fingerprint = self.sources.fingerprint(roots)
        return {**self.sources.code_files(roots), **files}, digest(fingerprint, files) if files else fingerprint


def modules_of(config: Config) -> list[str]:
    """Return the modules of users' quantities that a configuration measures, or whose tables it fills."""
    measured = [entry.component.name for entry in config.measures.values()]
    tables = [str(facts_of("measure", name).get("TABLE")) for name in measured]
    return sorted({name for name in (*measured, *tables) if "." in name and ":" not in name})


def find_quantity_modules(facts: Mapping[str, Any], modules: list[str]) -> list[str]:
    """Return the modules, of this package and of users, that a component loads if it FINDS declarations of quantities."""
    located = [components.locate(kind, name) for kind in facts.get("FINDS", ()) for name in sources_of(kind, modules)]
    return [location.module for location in located if location is not None]


def parts_always(options: Mapping[str, Any], facts: Mapping[str, Any], path: str) -> Iterator[tuple[str, Component]]:
    """Yield the components from which a measure builds networks, and the components that options name by module.

    BUILDS of the measure's file lists them; for kinds that it does not name, they are the plainest. A job that uses another one ends."""
    built = facts.get("BUILDS", {})
    for kind, names in sorted((built and {kind: [name] for kind, name in PLAIN.items()} | built).items()):
        known = components.names(kind)
        for name in names:
            if name not in known:
                raise problem(path, f"its component says BUILDS = {show_value(built)}", allowed=known, name=name)
            if components.locate(kind, name) is not None:
                yield kind, Component(name=name)
    for option in sorted(options.keys() - facts.get("PARTS", {}).keys()):
        for item in as_list(options[option]):
            part = item.get("name") if isinstance(item, dict) else item
            if isinstance(part, str) and DOTTED.fullmatch(part) and find_module(part.partition(":")[0]):
                yield "part", Component(name=part)


def parts_chosen(options: Mapping[str, Any], facts: Mapping[str, Any], builds: bool) -> Iterator[tuple[str, Component]]:
    """Yield the components that options choose (`PARTS`).

    With `builds`, for a measure that builds networks and declares no BUILDS, also yield every component of a network."""
    kinds = sorted(set(parts(Architecture).values())) if builds else []
    chosen = [(kind, Component(name)) for kind in kinds for name in components.names(kind)]
    for option, kind in facts.get("PARTS", {}).items():
        chosen += [(kind, part) for part in map(Component.parse, as_list(options.get(option, [])))]
    yield from ((kind, part) for kind, part in chosen if components.locate(kind, part.name) is not None)


def _check_table(table: Any, path: str, declaration: str) -> str:
    """Return a declared table of this package or of a user's module; raise if there is none. `declaration` is the text that names it."""
    reason = ""
    if isinstance(table, str):
        try:
            components.describe_columns(table)
            return table
        except RankfallError as error:
            reason = f": {error}" if "." in table else ""
    fault = f"its component says {declaration.format(show_value(table))}{reason}"
    raise problem(path, fault, allowed=components.names("table"), name=table)
