"""Measures and figures of a plan, each with the code that it depends on besides the cells."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from rankfall import components
from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.report.quantities import sources as sources_of
from rankfall.run.config.options import description
from rankfall.run.config.problems import problem, show_value
from rankfall.run.config.types import Config
from rankfall.run.keys.files import data_of, files_of
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan import uses
from rankfall.run.plan.cell import digest
from rankfall.run.plan.cells import module_of

MEASURE_ROOTS = {  # by the needs of a measure: modules that prepare its input, without jobs
    "cells": ("rankfall.measure.apply",),
    "nothing": ("rankfall.measure.context",),
    "tables": ("rankfall.measure.context",),
}
CELL_TABLES = ("cells", "training", "datasets")  # tables of every benchmark, whatever is measured
BUILDER = "rankfall/nets/network.py"  # the file that assembles networks from components by name
NEEDS = ("cells", "nothing", "tables")
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class MeasurePlan:
    """A measure with its dependencies besides the cells."""

    name: str
    component: Component
    table: str
    needs: str
    code: Mapping[str, str] = field(repr=False)
    fingerprint: str
    tables: tuple[str, ...] = ()  # the tables from which it is computed, if it needs tables
    cost: Mapping[str, float] = field(default_factory=dict)  # per cell: seconds, megabytes
    always: Mapping[str, str] = field(default_factory=dict, repr=False)  # code that no option in PARTS chooses

    @property
    def options(self) -> dict[str, Any]:
        return self.component.options

    @cached_property
    def key(self) -> str:
        """The hash of everything except the cell."""
        return digest("measure", self.component.name, self.component.options, self.fingerprint)


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


class OnDemand(Mapping[str, Entry], Generic[Entry]):
    """Entries of a section by name, each planned when it is first read, so that a job plans only its own."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Entry]) -> None:
        self.make = make
        self.made: dict[str, Entry | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Entry:
        found = self.made[name]
        if found is None:
            found = self.made[name] = self.make(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)


def modules_of(config: Config) -> list[str]:
    """Return the users' quantities that a configuration measures, or whose tables it fills. Such a table is named by its module."""
    components_of = {f"measures.{name}": entry.component for name, entry in config.measures.items()}
    tables = [str(_facts("measure", component, path).get("TABLE")) for path, component in components_of.items()]
    return select_own([*tables, *(component.name for component in components_of.values())])


def select_own(names: Iterable[str]) -> list[str]:
    """Return the names of measures and tables that are users' modules."""
    return sorted({name for name in names if "." in name and ":" not in name})


def find_quantity_modules(facts: Mapping[str, Any], modules: Iterable[str]) -> list[str]:
    """Return the modules that a component loads if it FINDS declarations of quantities: those of this package and those of users."""
    modules = list(modules)
    located = [components.locate(kind, name) for kind in facts.get("FINDS", ()) for name in sources_of(kind, modules)]
    return [location.module for location in located if location is not None]


def files_found_by(facts: Mapping[str, Any], modules: Iterable[str], path: str) -> dict[str, str]:
    """Return the files that these modules read (DATA), with their digests."""
    modules = list(modules)
    found = [(kind, name) for kind in facts.get("FINDS", ()) for name in sources_of(kind, modules)]
    return {
        file: content
        for kind, name in found
        for file, content in data_of(kind, name, f"{path} ({kind} of {name})").items()
    }


def table_of(config: Config, name: str) -> tuple[str, str]:
    """Return the table that a measure fills and what the measure needs, as its file declares them."""
    component, path = config.measures[name].component, f"measures.{name}"
    facts = _facts("measure", component, path)
    needs = facts.get("NEEDS", "cells")
    if "TABLE" not in facts and ":" in component.name:
        module = component.name.partition(":")[0]
        raise problem(path, f"{component.name!r} names a function", hint=f"a measure is named by its module: {module}")
    table = _declared_table(facts.get("TABLE"), path, "TABLE = {}")
    if needs not in NEEDS:
        raise problem(path, f"its component says NEEDS = {show_value(needs)}", allowed=NEEDS, given=needs)
    return table, needs


def measure_plan(
    config: Config, name: str, sources: Sources, modules: Iterable[str], made: Container[str]
) -> MeasurePlan:
    """Plan a measure. `made` are the tables that a measure of tables may read."""
    component, path = config.measures[name].component, f"measures.{name}"
    facts, (table, needs) = _facts("measure", component, path), table_of(config, name)
    roots = [module_of("measure", component), *MEASURE_ROOTS[needs], *find_quantity_modules(facts, modules)]
    files = files_of("measure", component, path) | files_found_by(facts, modules, path)
    if "BUILDS" in facts and needs != "nothing":
        raise problem(
            path,
            "its component says what it BUILDS networks of, but its networks are those of cells",
            hint="leave it out",
        )
    always: dict[str, str] = {}
    if needs != "cells":  # the parts of a cell are in the cell's key
        builds = "BUILDS" not in facts and BUILDER in sources.code_files(roots)
        roots, files = _with(sources, roots, files, uses.always(component.options, facts, path), path)
        always, _ = _code(sources, roots, files)
        roots, files = _with(sources, roots, files, uses.chosen(component.options, facts, builds), path)
    code, fingerprint = _code(sources, roots, files)
    wanted = _tables(facts, path) if needs == "tables" else ()
    wanted += tuple(
        sorted({table for kind in facts.get("FINDS", ()) for table in sources_of(kind, modules)} - {*wanted})
    )
    wanted = tuple(table for table in wanted if table in made)
    return MeasurePlan(name, component, table, needs, code, fingerprint, wanted, facts.get("COST", {}), always)


def _with(
    sources: Sources, roots: list[str], files: Mapping[str, str], some: Iterable[tuple[str, Component]], path: str
) -> tuple[list[str], dict[str, str]]:
    """Return modules and files, extended by those of some components."""
    both = list(some)
    more = {name: content for kind, part in both for name, content in files_of(kind, part, path).items()}
    return [*roots, *(module_of(kind, part) for kind, part in both)], {**files, **more}


def tables_for_measures(config: Config) -> set[str]:
    """Return the tables that measures of tables may read. Of each other's tables they may read only those computed from tables of cells, so
    that there are no cycles."""
    found = {*CELL_TABLES}
    for name, entry in config.measures.items():
        facts, (table, needs) = _facts("measure", entry.component, f"measures.{name}"), table_of(config, name)
        if needs != "tables" or ({*facts.get("TABLES", ())} <= {*CELL_TABLES} and not facts.get("FINDS")):
            found.add(table)
    return found


def _code(sources: Sources, roots: list[str], files: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the digests of the code that the roots import and of other files, by file and combined."""
    code, fingerprint = {**sources.code_files(roots), **files}, sources.fingerprint(roots)
    return code, digest(fingerprint, files) if files else fingerprint


def figure_plan(
    config: Config, name: str, sources: Sources, filled: Iterable[str], modules: Iterable[str] = ()
) -> FigurePlan:
    """Plan a figure. `filled` are the tables that measures fill."""
    component, path = config.figures[name].component, f"figures.{name}"
    facts = _facts("figure", component, path)
    if "USES" in facts and "TABLE" not in facts:  # a user's quantity may be one file, with the measure that uses it
        raise problem(
            path,
            "its component says what it USES of a network, but a figure is drawn from tables",
            hint="say it in the measure",
        )
    made = [*CELL_TABLES, *sorted({*filled})]
    tables = _tables(facts, path)
    for table in tables:
        if table not in made:
            raise problem(
                path, f"it is drawn from table {table!r}, which no measure of this configuration makes", allowed=made
            )
    files = files_of("figure", component, path) | files_found_by(facts, modules, path)
    roots = [module_of("figure", component), *find_quantity_modules(facts, modules)]
    return FigurePlan(name, component, tables, *_code(sources, roots, files))


def _tables(facts: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Return the tables that a measure of tables or a figure reads."""
    tables = tuple(_declared_table(table, path, "TABLES = [{}]") for table in facts.get("TABLES", ()))
    if not facts.get("TABLES"):
        raise problem(path, "its component does not say which TABLES it reads", allowed=components.names("table"))
    return tables


def _declared_table(table: Any, path: str, said: str) -> str:
    """Return a declared table: one of this package, or one named by a user's module."""
    why = " "
    if isinstance(table, str):
        try:
            components.describe_columns(table)
            return table
        except RankfallError as error:
            why = f": {error}" if "." in table else " "
    raise problem(
        path,
        f"its component says {said.format(show_value(table))}{why.strip()}",
        allowed=components.names("table"),
        given=table,
    )


def _facts(kind: str, component: Component, path: str) -> Mapping[str, Any]:
    found = description(kind, component.name, path)
    return found.facts if found else {}
