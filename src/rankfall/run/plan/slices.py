"""Slices: some cells of a plan, given by their place in the grid, so that a job builds its own cells only.

A slice lists combinations of the grid (`grid.0`, number 17), with their seeds and shards, and the cells that each measure measures. It has
no specification and no code. A job builds its cells with their keys from the current configuration and sources, and so notices whether they
are the planned cells, as if it had planned everything.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rankfall.design import Architecture, Task, Training
from rankfall.run.config.types import Compute
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import Cell, alike
from rankfall.run.plan.cells import Draft, Drafts, Shared, finish
from rankfall.run.plan.grid import Grid, Series

if TYPE_CHECKING:
    from rankfall.run.plan.build import Plan

Addresses = Mapping[
    tuple[Task, Architecture, Training], tuple[str, int]
]  # -> (entry of the grid, number of the combination)


@dataclass(frozen=True)
class Slice:
    """The part of a plan that one job needs, as plain data."""

    series: list[tuple[str, int, list[int], str]]  # entry, number, seeds, shard
    measured: dict[str, list[int]] = field(default_factory=dict)  # measure -> places of its cells in the slice

    def select(self, cells: list[Cell], measures: Iterable[str]) -> dict[str, frozenset[str]]:
        return {name: frozenset(cells[place].key for place in self.measured.get(name, ())) for name in measures}

    def raw(self) -> dict[str, Any]:
        return asdict(self)


def addresses_of(series: Iterable[Series]) -> Addresses:
    return {(one.task, one.architecture, one.training): (one.origin, one.number) for one in series}


def slice_of(plan: "Plan", cells: list[Cell]) -> Slice:
    """Return the slice of these cells from a whole plan."""
    series = []
    for some in alike(cells):
        origin, number = plan.addresses[some.task, some.architecture, some.training]
        for shard, part in itertools.groupby(some.cells, lambda cell: cell.shard):
            series.append((origin, number, [cell.seed for cell in part], shard))
    measured = {
        name: [place for place, cell in enumerate(cells) if cell.key in keys] for name, keys in plan.selected.items()
    }
    return Slice(series, {name: places for name, places in measured.items() if places})


def cells_of_slice(only: Slice, grid: Grid, compute: Compute, sources: Sources) -> list[Cell]:
    """Build the cells of a slice. Raise LookupError if the grid has no such combination."""
    drafts = Drafts(sources, compute)
    known: dict[tuple[str, int], tuple[Series, Shared]] = {}
    cells: list[Cell] = []
    for origin, number, seeds, shard in only.series:
        if (origin, number) not in known:
            series = grid.combination(origin, number, seeds)
            known[origin, number] = series, drafts.share(series)
        cells += finish(Draft(*known[origin, number]), seeds, shard)
    return cells
