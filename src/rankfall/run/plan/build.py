"""Build the plan: cells with their keys, in shards, and measures, tables and figures with their fingerprints."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rankfall import components
from rankfall.report.claim import check_claims
from rankfall.report.quantities import set_user_quantities
from rankfall.run.config.looks import check_looks
from rankfall.run.config.match import parse_filter
from rankfall.run.config.problems import problem
from rankfall.run.config.types import Config, parse, read
from rankfall.run.plan.cell import Cell, alike, digest
from rankfall.run.plan.cells import Costs, make_cells
from rankfall.run.plan.entries import CELL_TABLES, EntryPlans, FigurePlan, MeasurePlan, modules_of
from rankfall.run.plan.figure_options import check_declarations, check_figure_options
from rankfall.run.plan.grid import Grid, components_named_by, resolve_config
from rankfall.run.plan.selection import select

__all__ = ["CELL_TABLES", "FigurePlan", "MeasurePlan", "Plan", "make_plan"]

CLAIMS, EVIDENCE = "claims", "evidence"  # the measure that decides claims, and the figure of their evidence


@dataclass(frozen=True)
class Plan:
    """The cells, measures and figures of a configuration, with everything that jobs need of it."""

    config: Config
    cells: list[Cell]
    measures: Mapping[str, MeasurePlan]
    figures: Mapping[str, FigurePlan]
    selected: dict[str, frozenset[str]] = field(repr=False)  # measure -> keys of its cells
    labels: Mapping[str, str] = field(default_factory=dict)  # name -> its label in figures and on the page
    colours: Mapping[str, str] = field(default_factory=dict)  # name -> #rrggbb
    left_out: Mapping[str, Counter[str]] = field(default_factory=dict)  # measure -> why not measured -> number of cells

    @cached_property
    def shards(self) -> dict[tuple[str, str], list[Cell]]:
        """The cells of each (task, shard)."""
        shards: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            shards.setdefault((cell.task.name, cell.shard), []).append(cell)
        return dict(sorted(shards.items()))

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """The measures that fill each measured table."""
        tables: dict[str, list[str]] = {}
        for measure in self.measures.values():
            tables.setdefault(measure.table, []).append(measure.name)
        return dict(sorted(tables.items()))

    @property
    def modules(self) -> list[str]:
        """The users' quantities of this plan."""
        return modules_of(self.config)

    def measure_key(self, measure: str, cell: Cell | None = None) -> str:
        """Return the key under which the rows of a measure on a cell are stored, or of a measure that needs no cell."""
        return digest(self.measures[measure].key, cell.key if cell else None)

    def measured_cells(self, measure: str, task: str, shard: str) -> list[Cell]:
        """Return the cells of a shard that a measure selects."""
        return [cell for cell in self.shards[task, shard] if cell.key in self.selected[measure]]

    def origin(self, cell: Cell) -> dict[str, Any]:
        """Return the part of a cell's record that tells a later plan why the result is stale."""
        return {
            "spec": cell.spec,
            "data_key": cell.data_key,
            "code": dict(cell.code),
            "labels": list(cell.labels),
            "seed": cell.seed,
            "content": cell.content,
        }


def make_plan(source: Mapping[str, Any] | str | Path) -> Plan:
    """Return the plan of a configuration, which is a mapping or the path of a YAML or JSON file."""
    parsed = parse(read(source))
    sources = components.prepare_descriptions(components_named_by(parsed))
    config = resolve_config(parsed)
    labels, colours = check_looks(parsed)
    entries = EntryPlans(config, sources)
    set_user_quantities(entries.modules)  # planning makes the users' quantities of the plan available
    measures = {name: entries.measure(name) for name in config.measures}
    if entries.modules:
        check_declarations(entries.modules, entries.tables)
    figures = {name: entries.figure(name) for name in config.figures}
    _check_claims(measures, figures)
    filters = {name: entry.cells for name, entry in config.measures.items()}
    cells = make_cells(Grid(config).series(), config.compute, sources, _costs(measures, filters))
    selected, left_out = select(measures, filters, cells)
    series = list(alike(cells)) if figures else []
    for figure in figures.values():
        check_figure_options(figure, measures.values(), series, selected)
    if not cells and all(measure.needs == "cells" for measure in measures.values()):
        hint = "name cells, or a measure that needs none, such as orders"
        raise problem("grid", "has no cells, and no measure needs none, so there is nothing to compute", hint=hint)
    return Plan(config, cells, measures, figures, selected, labels, colours, left_out)


def _costs(measures: Mapping[str, MeasurePlan], filters: Mapping[str, Mapping[str, Any]]) -> list[Costs]:
    """Return the costs of the measures of cells whose files declare a COST."""
    return [
        (parse_filter(filters[name], f"measures.{name}.cells") if filters[name] else {}, measure.cost["seconds"])
        for name, measure in measures.items()
        if measure.needs == "cells" and "seconds" in measure.cost
    ]


def _check_claims(measures: Mapping[str, MeasurePlan], figures: Mapping[str, FigurePlan]) -> None:
    """Raise if claims are decided, and one of them cannot be read, or an option names one that does not exist."""
    if all(measure.component.name != CLAIMS for measure in measures.values()):
        return
    known = [claim.name for claim in check_claims()]
    for section, planned in (("measures", measures), ("figures", figures)):
        for entry in planned.values():
            for name in entry.options.get("claims", ()) if entry.component.name in (CLAIMS, EVIDENCE) else ():
                if name not in known:
                    path = f"{section}.{entry.name}.claims"
                    raise problem(path, f"{name!r} is not a claim", allowed=known, name=name)
