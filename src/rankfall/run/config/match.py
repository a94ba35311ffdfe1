"""Select cells by filters on any axis of the grid: `{task: sorting, depth: [2, 6], training.lr: 1e-3}`.

The same fields serve `exclude`, the `cells` of a measure, and the `REFUSES` of a component.
"""

import re
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from rankfall import filters
from rankfall.design import Architecture, Component, Described, Training, canonical, names
from rankfall.run.config.problems import problem, show_value, unknown_key

CELLS = 1_000_000  # largest number of cells of a grid: more are a mistake
RANGE = re.compile(r"(\d+)\.\.(\d+)")
LABELS = ("task", "architecture", "training")
ARCHITECTURE = names(Architecture)
TRAINING = tuple(f"training.{name}" for name in names(Training))


Filter = Mapping[str, Collection[Any]]  # field -> accepted values


class Seeded(Described, Protocol):
    """Cells that differ only in their seeds."""

    @property
    def seeds(self) -> Sequence[int]: ...


def values(axis_values: Any, path: str) -> list[Any]:
    """Return a value of an axis as a list. The value is a scalar, a list, a range "0..4" with both ends, or a list with ranges."""
    listed: list[Any] = []
    for item in filters.as_list(axis_values):
        bounds = RANGE.fullmatch(item) if isinstance(item, str) else None
        if not bounds:
            listed.append(item)
            continue
        low, high = int(bounds[1]), int(bounds[2])
        if high < low:
            raise problem(path, f"{item!r} is an empty range: it runs from low to high, both included")
        if len(listed) + high - low >= CELLS:
            raise problem(path, f"{show_value(item)} is too long a range", allowed=[f"at most {CELLS:,} values"])
        listed.extend(range(low, high + 1))
    if not listed:
        raise problem(path, "is an empty list, so the entry makes no cells")
    return listed


def parse_filter(raw: Mapping[Any, Any], path: str) -> Filter:
    """Return a filter with every value as a list. Raise if cells do not have a field."""
    for field in raw:
        if field not in ("seed", *LABELS, *ARCHITECTURE, *TRAINING) and not str(field).startswith("task."):
            raise unknown_key(path, field, ("seed", *LABELS, *ARCHITECTURE, *TRAINING, "task.<option>"))
    if not raw:
        raise problem(path, "is empty, so it would match every cell")
    listed = {field: values(item, f"{path}.{field}") for field, item in raw.items()}
    # Integers as keys of a dict, since ranges may be long and must be searched fast.
    return {
        field: dict.fromkeys(items).keys() if all(type(item) is int for item in items) else items
        for field, items in listed.items()
    }


def matches(cell: Described, accepted: Filter) -> bool:
    """Return whether the cell has an accepted value in every field."""
    return all(_among(value(cell, field), items) for field, items in accepted.items())


def select_seeds(cells: Seeded, accepted: Filter) -> Sequence[int]:
    """Return the seeds of the cells that have an accepted value in every field."""
    if not all(_among(value(cells, field), items) for field, items in accepted.items() if field != "seed"):
        return ()
    if "seed" not in accepted:
        return cells.seeds
    return [seed for seed in cells.seeds if _among(seed, accepted["seed"])]


def _among(cell_value: Any, items: Collection[Any]) -> bool:
    """Return whether a filter's values contain a cell's value."""
    if type(cell_value) is int and isinstance(items, KeysView):
        return cell_value in items
    return any(filters.matches(cell_value, item) for item in items)


def find_unmatched(cells: Iterable[Seeded], accepted: Filter) -> tuple[str, Any] | None:
    """Return the first (field, value) that no cell has. Such a value has no effect and is probably a mistake."""
    cells = list(cells)
    for field, items in sorted(accepted.items()):
        seeds = {seed for group in cells for seed in group.seeds} if field == "seed" else set()
        present = list(seeds) or [value(group, field) for group in cells]
        integers = {item for item in present if type(item) is int}
        others = {spell(item): item for item in present if type(item) is not int}.values()  # distinct values
        for item in items:
            known = type(item) is int and item in integers
            if not known and not any(filters.matches(other, item) for other in others):
                return field, item
    return None


def spell(item: Any) -> str:
    """Return the same text for equal values of an axis."""
    return canonical(asdict(item) if isinstance(item, Component) else item)


def value(cell: Described, field: str) -> Any:
    """Return the value of a field, which all seeds share. For a component field, return the component."""
    if field in LABELS:
        return getattr(cell, field).name
    if field.startswith("training."):
        return getattr(cell.training, field.removeprefix("training."))
    if field.startswith("task."):
        return cell.task.task.options.get(field.removeprefix("task."))
    return getattr(cell.architecture, field)


def describe_filter(accepted: Mapping[str, Any]) -> str:
    """Describe a filter in words."""
    shown = {
        field: [str(item) if isinstance(item, str | int) else show_value(item) for item in values(items, "")]
        for field, items in accepted.items()
    }
    return ", ".join(f"{field} {' or '.join(items)}" for field, items in shown.items())
