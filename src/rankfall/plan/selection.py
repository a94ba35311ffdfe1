"""The cells of a measure: those that its entry selects. It must be able to measure all of them, and no two entries give the same rows.

Facts of a measure's component that are read here: `INPUTS`, `TARGETS`, `REFUSES` and `REQUIRES` (`rules.py` says what they mean).
"""

import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rankfall import components
from rankfall.config.match import matches, parse_filter, unmatched
from rankfall.config.options import description
from rankfall.config.problems import problem, shown
from rankfall.config.rules import beyond, declared, lengths, objection, task_facts
from rankfall.plan.cell import Cell

if TYPE_CHECKING:
    from rankfall.plan.build import MeasurePlan

HINT = "name the right cells in `cells`"


def select(
    measures: Mapping[str, "MeasurePlan"], filters: Mapping[str, dict[str, Any]], cells: list[Cell]
) -> dict[str, frozenset[str]]:
    """Measure -> keys of its cells."""
    found = {name: _cells_of(measure, filters[name], cells) for name, measure in measures.items()}
    for one, other in itertools.combinations(measures.values(), 2):
        _tell_apart(one, other, found[one.name], found[other.name])
    return {name: frozenset(cell.key for cell in chosen) for name, chosen in found.items()}


def _cells_of(measure: "MeasurePlan", raw: dict[str, Any], cells: list[Cell]) -> list[Cell]:
    path = f"measures.{measure.name}.cells"
    if measure.needs != "cells":
        if raw:
            raise problem(path, f"this measure needs {measure.needs}, so it takes no filter of cells")
        return []
    wanted = parse_filter(raw, path) if raw else {}
    nobody = unmatched(cells, wanted)
    if nobody:
        raise problem(f"{path}.{nobody[0]}", f"{shown(nobody[1])} matches no cell of the grid")
    found = [cell for cell in cells if matches(cell, wanted)]
    if not found:
        raise problem(path, "matches no cell of the grid")
    _check_able(measure, found, path if raw else path.removesuffix(".cells"))
    return found


def _check_able(measure: "MeasurePlan", cells: Iterable[Cell], path: str) -> None:
    """Raise if there is a cell that the measure cannot measure; one seed of each is checked."""
    name = measure.component.name
    about = description("measure", name, path)
    facts = about.facts if about else {}
    alike = {(cell.task, cell.architecture, cell.training): cell for cell in cells}
    facts_of, task_of = functools.cache(declared), functools.cache(lambda task: task_facts(task, path))
    attentions = {*components.names("attention"), *(cell.architecture.attention.name for cell in alike.values())}
    known = {part for attention in attentions for part in facts_of("attention", attention).get("PROVIDES", ())}
    for use in facts.get("USES", ()):
        if use not in known:
            said = f"measure {name!r} says that it USES {use!r}, which no attention provides"
            raise problem(path, said, allowed=sorted(known), given=use)
    for cell in alike.values():
        for fact, has in task_of(cell.task.task.name).items():
            able = facts.get(fact, has)
            able = [able] if isinstance(able, str) else able
            if has not in able:
                raise problem(
                    path,
                    f"measure {name!r} is for {' or '.join(able)}, but task {cell.task.name!r} has {has}",
                    hint=HINT,
                )
        what = objection("measure", name, facts, cell, facts_of) or beyond(cell, lengths(facts, measure.options))
        if what:
            raise problem(path, f"{' / '.join(cell.labels)}: {what}", hint=HINT)


def _tell_apart(one: "MeasurePlan", other: "MeasurePlan", first: list[Cell], second: list[Cell]) -> None:
    """Raise if two entries would fill a table with the same rows: a row says what was measured, not which entry asked for it."""
    if one.table != other.table or one.component.name != other.component.name:
        return
    if one.needs != "cells":
        if one.key == other.key:
            raise problem(f"measures.{other.name}", f"is the same as measures.{one.name}", hint="take one of them out")
        return
    keys = {cell.key for cell in first}
    common = next((cell for cell in second if cell.key in keys), None)
    if common is not None:
        what = f"measures.{one.name} fills table {one.table!r} too, and both are for {' / '.join(common.labels)}"
        hint = "write one entry, or name different cells in `cells`"
        raise problem(
            f"measures.{other.name}", f"{what}, depth {common.architecture.depth}, seed {common.seed}", hint=hint
        )
