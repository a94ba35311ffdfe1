"""Select the cells of each measure. The measure must support all cells that its entry selects. Without `cells` it measures the cells that
it supports, and the plan lists those that it leaves out. No two entries may give the same rows, or measure networks of one setting in two
ways.

The facts `INPUTS`, `TARGETS`, `SEQUENCES`, `REFUSES` and `REQUIRES` of a measure's component decide (`rules.py` explains them).
"""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rankfall import components
from rankfall.run.config.match import find_unmatched, parse_filter, select_seeds
from rankfall.run.config.problems import problem, show_value
from rankfall.run.config.rules import beyond, lengths, objection, task_facts
from rankfall.run.plan.cell import Alike, Cell, alike
from rankfall.run.plan.entries import MeasurePlan

HINT = "name the right cells in `cells`"


def select(
    measures: Mapping[str, "MeasurePlan"], filters: Mapping[str, dict[str, Any]], cells: list[Cell]
) -> tuple[dict[str, frozenset[str]], dict[str, Counter[str]]]:
    """Return measure -> keys of its cells, and measure -> reasons why it does not support further cells, with their numbers."""
    grid = list(alike(cells))
    both = {name: _cells_of(measure, filters[name], grid) for name, measure in measures.items()}
    selected = {name: chosen for name, (chosen, _) in both.items()}
    distinct: dict[frozenset[str], frozenset[str]] = {}
    keys = {}
    for name, chosen in selected.items():
        measured = frozenset(cell.key for series in chosen for cell in series.cells)
        keys[name] = distinct.setdefault(measured, measured)  # measures of the same cells share one set
    for first, second in itertools.combinations(measures.values(), 2):
        _tell_apart(first, second, keys[first.name], selected[first.name], selected[second.name])
    return keys, {name: reasons for name, (_, reasons) in both.items() if reasons}


def _cells_of(measure: MeasurePlan, raw: dict[str, Any], cells: list[Alike]) -> tuple[list[Alike], Counter[str]]:
    """Return the cells that a measure measures, and the reasons why it leaves out others, with their numbers."""
    path = f"measures.{measure.name}.cells"
    if measure.needs != "cells":
        if raw:
            raise problem(path, f"this measure needs {measure.needs}, so it takes no filter of cells")
        return [], Counter()
    accepted = parse_filter(raw, path) if raw else {}
    unmatched = find_unmatched(cells, accepted)
    if unmatched:
        raise problem(f"{path}.{unmatched[0]}", f"{show_value(unmatched[1])} matches no cell of the grid")
    filtered = (series.with_seeds(select_seeds(series, accepted)) for series in cells)
    chosen = [series for series in filtered if series.cells]
    if not chosen:
        raise problem(path, "matches no cell of the grid")
    objection_to = _objections(measure, path if raw else path.removesuffix(".cells"))
    supported, reasons = [], Counter[str]()
    for series in chosen:
        reason = objection_to(series.cells[0])
        if reason is None:
            supported.append(series)
        elif raw:
            raise problem(path, f"{' / '.join(series.cells[0].labels)}: {reason}", hint=HINT)
        else:
            reasons[reason] += len(series.cells)
    if not supported:
        why = "; ".join(f"{reason} ({count} cells)" for reason, count in reasons.most_common(2))
        raise problem(path.removesuffix(".cells"), f"no cell of the grid can be measured: {why}")
    return supported, reasons


def _objections(measure: MeasurePlan, path: str) -> Callable[[Cell], str | None]:
    """Return a function that returns why the measure does not support a cell, or None if it does. No answer depends on the seed."""
    name, facts = measure.component.name, components.facts_of("measure", measure.component.name)
    facts_of, task_of = functools.cache(components.facts_of), functools.cache(lambda task: task_facts(task, path))
    measured_lengths = lengths(facts, measure.options)

    def objection_to(cell: Cell) -> str | None:
        for fact, value in task_of(cell.task.task.name).items():
            accepted = facts.get(fact, value)
            accepted = [accepted] if isinstance(accepted, str) else accepted
            if value not in accepted:
                return f"measure {name!r} is for {' or '.join(accepted)}, but task {cell.task.name!r} has {value}"
        return objection("measure", name, cell, facts_of) or beyond(cell, measured_lengths)

    return objection_to


def _tell_apart(
    first: MeasurePlan,
    second: MeasurePlan,
    keys: frozenset[str],
    first_cells: list[Alike],
    second_cells: list[Alike],
) -> None:
    """Raise if two entries would fill a table with the same rows, since a row does not tell which entry requested it.

    `keys` are the keys of the first entry's cells."""
    if first.table != second.table or first.component.name != second.component.name:
        return
    if first.needs != "cells":
        if first.key == second.key:
            raise problem(
                f"measures.{second.name}", f"is the same as measures.{first.name}", hint="take one of them out"
            )
        return
    common = next((cell for series in second_cells for cell in series.cells if cell.key in keys), None)
    if common is not None:
        fault = f"measures.{first.name} fills table {first.table!r} too, and both are for {common.title}"
        hint = "write one entry, or name different cells in `cells`"
        raise problem(f"measures.{second.name}", fault, hint=hint)
    if first.component != second.component:
        _refuse_two_ways(
            first, second, [series.cells[0] for series in first_cells], [series.cells[0] for series in second_cells]
        )


def _refuse_two_ways(
    first: MeasurePlan, second: MeasurePlan, first_cells: list[Cell], second_cells: list[Cell]
) -> None:
    """Raise if two entries measure networks of one setting with different options.

    Their numbers would be averaged and compared as if they were one quantity."""
    settings = {_setting_of(cell): cell for cell in first_cells}
    for cell in {_setting_of(cell): cell for cell in second_cells}.values():
        rest, sizes = _setting_of(cell)
        # A size that a network does not read equals any size.
        mates = (
            other
            for (other_rest, other_sizes), other in settings.items()
            if rest == other_rest and all(a == b or a is None or b is None for a, b in zip(sizes, other_sizes))
        )
        if mate := next(mates, None):
            ways = [first.options, second.options]
            differ = [name for name in sorted({*ways[0], *ways[1]}) if ways[0].get(name) != ways[1].get(name)]
            values = (f"{name} {' and '.join(show_value(way.get(name)) for way in ways)}" for name in differ)
            fault = (
                f"measures.{first.name} fills table {first.table!r} too, and numbers of {' / '.join(cell.labels)}, depth "
                f"{cell.architecture.depth}, are compared with those of {' / '.join(mate.labels)}: of one setting, but measured in two "
                f"ways, {' and '.join(values)}"
            )
            hint = "give both the same options, or measure them in configurations of their own"
            raise problem(f"measures.{second.name}", fault, hint=hint)


def _setting_of(cell: Cell) -> tuple[Any, ...]:
    """Return the setting of a cell, sizes last, like the scorecard's (`report/settings.py`)."""
    design = cell.architecture
    return (cell.task, cell.training, design.depth), (design.width, design.heads, design.head_width, design.mlp_width)
