"""The cells of a measure, as its entry selects them. The measure must support all selected cells. Without `cells` it measures those that it
supports, and the plan says what is left out. No two entries may give the same rows, or measure networks of one setting in two ways.

The facts `INPUTS`, `TARGETS`, `SEQUENCES`, `REFUSES` and `REQUIRES` of a measure's component are read here (`rules.py` explains them).
"""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rankfall import components
from rankfall.run.config.match import find_unmatched, parse_filter, select_seeds
from rankfall.run.config.problems import problem, show_value
from rankfall.run.config.rules import (
    beyond,
    lengths,
    objection,
    task_facts,
)
from rankfall.run.plan.cell import Alike, Cell, alike

if TYPE_CHECKING:
    from rankfall.run.plan.build import MeasurePlan

HINT = "name the right cells in `cells`"


def select(
    measures: Mapping[str, "MeasurePlan"], filters: Mapping[str, dict[str, Any]], cells: list[Cell]
) -> tuple[dict[str, frozenset[str]], dict[str, Counter[str]]]:
    """Return the keys of each measure's cells, and by measure the reasons why it does not support further cells, with counts."""
    grid = list(alike(cells))
    both = {name: _cells_of(measure, filters[name], grid) for name, measure in measures.items()}
    found = {name: chosen for name, (chosen, _) in both.items()}
    made: dict[frozenset[str], frozenset[str]] = {}
    keys = {}
    for name, chosen in found.items():
        own = frozenset(cell.key for some in chosen for cell in some.cells)
        keys[name] = made.setdefault(own, own)  # measures of the same cells share one set
    for one, other in itertools.combinations(measures.values(), 2):
        _tell_apart(one, other, keys[one.name], found[one.name], found[other.name])
    return keys, {name: left for name, (_, left) in both.items() if left}


def _cells_of(measure: "MeasurePlan", raw: dict[str, Any], cells: list[Alike]) -> tuple[list[Alike], Counter[str]]:
    """Return the cells that a measure measures, and the reasons why it does not measure more, with counts."""
    path = f"measures.{measure.name}.cells"
    if measure.needs != "cells":
        if raw:
            raise problem(path, f"this measure needs {measure.needs}, so it takes no filter of cells")
        return [], Counter()
    wanted = parse_filter(raw, path) if raw else {}
    nobody = find_unmatched(cells, wanted)
    if nobody:
        raise problem(f"{path}.{nobody[0]}", f"{show_value(nobody[1])} matches no cell of the grid")
    found = [kept for some in cells if (kept := some.with_seeds(select_seeds(some, wanted))).cells]
    if not found:
        raise problem(path, "matches no cell of the grid")
    why_not = _objections(measure, path if raw else path.removesuffix(".cells"))
    able, left = [], Counter[str]()
    for some in found:
        why = why_not(some.cells[0])
        if why is None:
            able.append(some)
        elif raw:
            raise problem(path, f"{' / '.join(some.cells[0].labels)}: {why}", hint=HINT)
        else:
            left[why] += len(some.cells)
    if not able:
        raise problem(path.removesuffix(".cells"), f"no cell of the grid can be measured: {_say_reasons(left)}")
    return able, left


def _say_reasons(left: Counter[str]) -> str:
    """Say why no cell is measured. If cells have different reasons, give the two most frequent ones with their counts."""
    (most, _), *others = left.most_common()
    if not others:
        return most
    said = "; ".join(f"{why} ({count} of {left.total()} cells)" for why, count in left.most_common(2))
    return said if len(others) == 1 else f"{said}; and {len(others) - 1} more"


def _objections(measure: "MeasurePlan", path: str) -> Callable[[Cell], str | None]:
    """Return a function that says why the measure does not support a cell, or None if it does. The answer depends on no seed."""
    name, facts = measure.component.name, components.facts_of("measure", measure.component.name)
    facts_of, task_of = functools.cache(components.facts_of), functools.cache(lambda task: task_facts(task, path))
    asked = lengths(facts, measure.options)

    def why_not(cell: Cell) -> str | None:
        for fact, has in task_of(cell.task.task.name).items():
            able = facts.get(fact, has)
            able = [able] if isinstance(able, str) else able
            if has not in able:
                return f"measure {name!r} is for {' or '.join(able)}, but task {cell.task.name!r} has {has}"
        return objection("measure", name, facts, cell, facts_of) or beyond(cell, asked)

    return why_not


def _tell_apart(
    one: "MeasurePlan", other: "MeasurePlan", keys: frozenset[str], first: list[Alike], second: list[Alike]
) -> None:
    """Raise if two entries would fill a table with the same rows, since a row does not say which entry requested it. `keys` are the keys of
    the first entry's cells."""
    if one.table != other.table or one.component.name != other.component.name:
        return
    if one.needs != "cells":
        if one.key == other.key:
            raise problem(f"measures.{other.name}", f"is the same as measures.{one.name}", hint="take one of them out")
        return
    common = next((cell for some in second for cell in some.cells if cell.key in keys), None)
    if common is not None:
        what = f"measures.{one.name} fills table {one.table!r} too, and both are for {' / '.join(common.labels)}"
        hint = "write one entry, or name different cells in `cells`"
        raise problem(
            f"measures.{other.name}", f"{what}, depth {common.architecture.depth}, seed {common.seed}", hint=hint
        )
    if one.component != other.component:
        _refuse_two_ways(one, other, [some.cells[0] for some in first], [some.cells[0] for some in second])


def _refuse_two_ways(one: "MeasurePlan", other: "MeasurePlan", first: list[Cell], second: list[Cell]) -> None:
    """Raise if two entries measure networks of one setting with different options. Their numbers would be averaged and compared as if they
    were one quantity."""
    places = {_read_place(cell): cell for cell in first}
    for cell in {_read_place(cell): cell for cell in second}.values():
        mate = next((places[place] for place in places if _share_setting(place, _read_place(cell))), None)
        if mate is None:
            continue
        options = sorted({*one.options, *other.options})
        differ = [name for name in options if one.options.get(name) != other.options.get(name)]
        ways = " and ".join(
            f"{name} {show_value(one.options.get(name))} and {show_value(other.options.get(name))}" for name in differ
        )
        what = f"measures.{one.name} fills table {one.table!r} too, and numbers of {' / '.join(cell.labels)}, depth "
        what += f"{cell.architecture.depth}, are compared with those of {' / '.join(mate.labels)}: of one setting, but measured in two "
        what += f"ways, {ways}"
        hint = "give both the same options, or measure them in configurations of their own"
        raise problem(f"measures.{other.name}", what, hint=hint)


def _read_place(cell: Cell) -> tuple[Any, ...]:
    """Return the setting of a cell, sizes last, as the scorecard has it (`report/settings.py`)."""
    design = cell.architecture
    return (cell.task, cell.training, design.depth), (design.width, design.heads, design.head_width, design.mlp_width)


def _share_setting(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return whether two cells have one setting. A size that a network does not read equals any other."""
    return one[0] == other[0] and all(a == b or a is None or b is None for a, b in zip(one[1], other[1]))
