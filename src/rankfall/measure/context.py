"""The input of every measure: one object with its data, its random numbers, and a way to stop and resume.

A measure of cells reads `network`, `data` and `cells`, which hold one cell in a job. A measure of tables reads `table(name)`. A long
measure saves its state in `rows`, item by item, or while it trains probes (`rankfall.train.loop.fit_or_resume`). A job that must stop
keeps its results so far, and the next job resumes from there.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from rankfall import random_streams
from rankfall.annotations import DataFrame

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rankfall.design import Component, Designed
    from rankfall.nets.network import Network
    from rankfall.train.data import Data
    from rankfall.train.loop import Checkpoint

Rows = list[dict[str, Any]]
Parts = frozenset[tuple[str, "Component"]]  # kinds and components
T = TypeVar("T")


class RowCache(Protocol):
    """A store of the rows of items, under the components that the items are made of (`run/jobs/row_keeper.py`)."""

    def keys(self, name: str, items: Sequence[Any], parts: Sequence[Parts]) -> list[str]: ...

    def find(self, keys: Sequence[str]) -> dict[str, Rows]: ...

    def within(self, parts: Parts) -> AbstractContextManager[None]: ...

    def save(self, rows: Mapping[str, Rows]) -> None: ...


class NoCache:
    """The cache of a measure that does not declare what its items are made of, or that is called outside a job. It stores nothing."""

    def keys(self, name: str, items: Sequence[Any], parts: Sequence[Parts]) -> list[str]:
        return [str(index) for index in range(len(items))]

    def find(self, keys: Sequence[str]) -> dict[str, Rows]:
        return {}

    def within(self, parts: Parts) -> AbstractContextManager[None]:
        return nullcontext()

    def save(self, rows: Mapping[str, Rows]) -> None:
        pass


class Uninterrupted:
    """The checkpoint of a measure that is called outside a job. It never stops and stores nothing."""

    def load(self, name: str) -> None:
        return None

    def after_step(self, name: str, step: int, state: "Callable[[], Mapping[str, Tensor]]") -> None:
        pass


@dataclass(frozen=True)
class Context:
    """The input of a measure. Fields that the measure's NEEDS does not name are empty."""

    network: "Network" = None  # type: ignore[assignment]
    data: "Data" = None  # type: ignore[assignment]
    cells: "Sequence[Designed]" = ()  # the cell of the network, for a measure of cells
    table: Callable[[str], DataFrame | None] = lambda name: None  # None if this configuration makes no such table
    device: "torch.device | str" = "cpu"
    checkpoint: "Checkpoint" = field(default_factory=Uninterrupted)
    kept: RowCache = field(default_factory=NoCache)

    def stream(self, *names: str | int, member: int | None = None) -> np.random.Generator:
        """Return the random stream of a purpose. The names begin with the measure's.

        A member's numbers depend on the seed of its cell and on the names, not on its stack. Without a member they are common to all."""
        return random_streams.stream(*((0, "common") if member is None else (self.cells[member].seed,)), *names)

    def rows(
        self,
        items: Iterable[T],
        rows_of: Callable[[T], Rows],
        name: str = "rows",
        made_of: "Callable[[T], Iterable[tuple[str, Component]]] | None" = None,
    ) -> Rows:
        """Return the rows of all items, in order. Rows that a stopped job computed are not computed again.

        `name` distinguishes the calls of one measure. `made_of` returns the kinds and components of an item. With it, a measure that needs
        nothing or tables stores its rows for as long as these stay the same: the item (a dataclass or a JSON value), the code of its
        components, and the measure's code and options except PARTS. The rows must depend on nothing else, and `rows_of` itself must load
        the components."""
        import torch

        listed, kept = list(items), self.kept if made_of else NoCache()
        item_parts = [frozenset(made_of(item) if made_of else ()) for item in listed]
        keys = kept.keys(name, listed, item_parts)
        stored, saved = kept.find(keys), self.checkpoint.load(name)
        fresh: dict[str, Rows] = json.loads(saved["rows"].numpy().tobytes()) if saved else {}

        def state() -> "dict[str, Tensor]":
            text = json.dumps(fresh, default=lambda value: value.item()).encode()
            return {"rows": torch.frombuffer(bytearray(text), dtype=torch.uint8)}

        missing = [index for index, key in enumerate(keys) if key not in stored and key not in fresh]
        for parts, indices in groupby(missing, lambda index: item_parts[index]):
            with kept.within(parts):
                for index in indices:
                    fresh[keys[index]] = rows_of(listed[index])
                    self.checkpoint.after_step(name, index + 1, state)
        kept.save(fresh)
        rows = stored | fresh
        return [row for key in keys for row in rows[key]]
