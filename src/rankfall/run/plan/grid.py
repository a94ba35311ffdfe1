"""Expand the grid: from entries with axes to the combinations of task, architecture and training, each with its seeds.

A combination is built, checked and compared once for all its seeds, so a million cells take little longer than a thousand.
"""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import ValidationError

from rankfall.design import Architecture, Component, Task, Training, canonical, parts
from rankfall.filters import as_list
from rankfall.run.config.match import (
    ARCHITECTURE,
    CELLS,
    LABELS,
    TRAINING,
    Filter,
    find_unmatched,
    parse_filter,
    select_seeds,
    spell,
    values,
)
from rankfall.run.config.options import check_plain, resolve
from rankfall.run.config.problems import problem, show_value, translate, unknown_key
from rankfall.run.config.rules import Rules
from rankfall.run.config.types import Config, Crossing
from rankfall.run.config.values import Entry, model_of

SECTIONS = {"task": "tasks", "architecture": "architectures", "training": "trainings"}


class Series(NamedTuple):
    """A combination of the entry `origin`, with its seeds."""

    task: Task
    architecture: Architecture
    training: Training
    seeds: Sequence[int]
    origin: str


class Grid:
    """The grid of a configuration with resolved components, and its expansion."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.rules = Rules()
        self.built: dict[tuple[Any, ...], Any] = {}  # specifications, each built once for all combinations that use it

    def series(self) -> Iterator[Series]:
        """Yield all combinations, entry by entry."""
        total = 0
        for number, entry in enumerate(self.config.grid):
            path = f"grid.{number}"
            for raw in (entry.axes, *(entry.axes | extra for extra in entry.include)):
                total += math.prod(len(values(items, f"{path}.{axis}")) for axis, items in raw.items())
                if total > CELLS:
                    raise problem(path, f"with this entry the grid has {total:,} cells", allowed=[f"at most {CELLS:,}"])
            axes = self.axes(entry.axes, path)
            yield from self.exclude(list(self.cross(axes, path)), entry, path)
            for index, raw in enumerate(entry.include):
                inner = f"{path}.include.{index}"
                if not raw:
                    raise problem(inner, "is empty, so it adds nothing")
                yield from self.cross(axes | self.axes(raw, inner), inner)

    def exclude(self, crossed: list[Series], entry: Crossing, path: str) -> Iterator[Series]:
        """Yield the combinations without the excluded cells. An exclude that matches no cell is an error."""
        remaining = crossed
        for index, raw in enumerate(entry.exclude):
            inner = f"{path}.exclude.{index}"
            excluded: Filter = parse_filter(raw, inner)
            unmatched = find_unmatched(crossed, excluded)
            if unmatched:
                raise problem(f"{inner}.{unmatched[0]}", f"{show_value(unmatched[1])} matches no cell of this entry")
            if not any(select_seeds(series, excluded) for series in crossed):
                raise problem(inner, "matches no cell of this entry")
            reduced = (drop_seeds(series, select_seeds(series, excluded)) for series in remaining)
            remaining = [series for series in reduced if series.seeds]
        if not remaining and not entry.include:
            raise problem(path, "makes no cells: everything is excluded")
        yield from remaining

    def axes(self, raw: Mapping[Any, Any], path: str) -> dict[str, list[Any]]:
        """Return every axis with its checked values."""
        checked: dict[str, list[Any]] = {}
        for axis, items in raw.items():
            where = f"{path}.{axis}"
            if axis in LABELS:
                checked[axis] = [self.label(axis, item, where) for item in values(items, where)]
            elif axis == "seed":
                checked[axis] = [_seed(item, where) for item in values(items, where)]
            elif axis in ARCHITECTURE:
                checked[axis] = [_field(Architecture, axis, item, where) for item in values(items, where)]
            elif axis in TRAINING:
                field = axis.removeprefix("training.")
                checked[axis] = [_field(Training, field, item, where) for item in values(items, where)]
            elif isinstance(axis, str) and axis.startswith("task."):
                checked[axis] = values(items, where)
                check_plain(checked[axis], where)
            else:
                raise unknown_key(
                    path, axis, (*LABELS, "seed", *ARCHITECTURE, *TRAINING, "task.<option>", "exclude", "include")
                )
            ((text, count),) = Counter(map(spell, checked[axis])).most_common(1)
            if count > 1:
                raise problem(where, f"{text} is there twice")
        return checked

    def label(self, axis: str, name: Any, path: str) -> str:
        """Return the name of an entry; raise if there is no such entry."""
        known = getattr(self.config, SECTIONS[axis])
        if not isinstance(name, str) or name not in known:
            fault = f"{show_value(name)} is not one of the {SECTIONS[axis]}"
            raise problem(path, fault, allowed=sorted(known), name=name)
        return name

    def cross(self, axes: Mapping[str, list[Any]], origin: str) -> Iterator[Series]:
        """Yield the cross product of an entry's axes."""
        names = [axis for axis in axes if axis != "seed"]
        for combination in itertools.product(*(axes[name] for name in names)):
            yield self.combine(dict(zip(names, combination)), axes["seed"], origin)

    def combine(self, chosen: dict[str, Any], seeds: Sequence[int], path: str) -> Series:
        """Build a task, an architecture and a training with the axes' values, and check that they go together."""
        change: dict[str, dict[str, Any]] = {"task": {}, "architecture": {}, "training": {}}
        for axis, item in chosen.items():
            section, _, field = axis.rpartition(".")
            if axis not in LABELS:
                change[section or "architecture"][field] = item
        task = self.task(chosen["task"], change["task"], path)
        architecture, training = (
            self.build(section, chosen[section], change[section], task, path)
            for section in ("architecture", "training")
        )
        series = Series(task, architecture, training, seeds, path)
        self.rules.refuse(series, f"{path} ({task.name}, {architecture.name}, {training.name})")
        return series

    def task(self, name: str, change: dict[str, Any], path: str) -> Task:
        """Return a task with changed options."""
        plain = self.config.tasks[name]
        if not change:
            return plain
        ident = ("task", name, canonical(change))
        if ident not in self.built:
            component = Component(plain.task.name, plain.task.options | change)
            self.built[ident] = replace(plain, task=resolve("task", component, f"{path}.task"))
        return self.built[ident]

    def build(self, axis: str, name: str, change: dict[str, Any], task: Task, path: str) -> Any:
        """Return an architecture or a training for a task, with changed fields."""
        ident = (axis, name, task.name, tuple(change.items()))
        if ident not in self.built:
            where = path if change else f"{SECTIONS[axis]}.{name}"
            complete = self.rules.complete if axis == "architecture" else self.rules.complete_training
            self.built[ident] = complete(replace(getattr(self.config, SECTIONS[axis])[name], **change), task, where)
        return self.built[ident]


def parts_of_entries(config: Config) -> Iterator[tuple[str, str, dict[str, tuple[str, Component]]]]:
    """Yield section, name, and {field: (kind, component)} of each entry."""
    for section in (*SECTIONS.values(), "measures", "figures"):
        for name, entry in getattr(config, section).items():
            kinds = parts(type(entry)) if section in SECTIONS.values() else {section[:-1]: section[:-1]}
            named = {field: (kind, getattr(entry, field)) for field, kind in kinds.items()}
            yield section, name, {field: part for field, part in named.items() if part[1] is not None}


def components_named_by(config: Config) -> Iterator[tuple[str, str]]:
    """Yield (kind, name) for the components of all entries and axes."""
    for _, _, named in parts_of_entries(config):
        yield from ((kind, component.name) for kind, component in named.values())
    kinds = {**parts(Architecture), **{f"training.{field}": kind for field, kind in parts(Training).items()}}
    for axes in [axes for entry in config.grid for axes in (entry.axes, *entry.include)]:
        for axis in axes.keys() & kinds.keys():
            for item in as_list(axes[axis]):
                name = item.get("name") if isinstance(item, dict) else item
                if isinstance(name, str):
                    yield kinds[axis], name


def resolve_config(config: Config) -> Config:
    """Return the configuration with every component checked and its options complete."""
    change: dict[str, dict[str, Any]] = {}
    for section, name, named in parts_of_entries(config):
        entry, path = getattr(config, section)[name], f"{section}.{name}"
        several = section in ("architectures", "trainings")
        resolved = {
            field: resolve(kind, component, f"{path}.{field}" if several else path)
            for field, (kind, component) in named.items()
        }
        whole = entry.model_copy(update=resolved) if isinstance(entry, Entry) else replace(entry, **resolved)
        change.setdefault(section, {})[name] = whole
    return config.model_copy(update=change)


def drop_seeds(series: Series, seeds: Collection[int]) -> Series:
    """Return the series without these seeds."""
    dropped = set(seeds)
    return series._replace(seeds=[seed for seed in series.seeds if seed not in dropped]) if dropped else series


def _field(design: type, field: str, value: Any, path: str) -> Any:
    """Return a value of a field, checked like that of an entry."""
    try:
        checked = getattr(model_of(design).model_validate({"name": "x", field: value}), field)
    except ValidationError as error:
        raise translate(error, path.removesuffix(field).rstrip(".")) from None
    return resolve(parts(design)[field], checked, path) if isinstance(checked, Component) else checked


def _seed(value: Any, path: str) -> int:
    """Return a seed; raise unless it is an integer from 0 that fits into 63 bits."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise problem(path, f"{show_value(value)} is not a seed", allowed=["integers from 0", 'ranges such as "0..4"'])
    return value
