"""What every measure is given: one object with its inputs, its random numbers, and a way to stop and go on.

A measure of cells reads `network`, `data` and `cells`, of one cell in a job; a measure of tables `table(name)`. A measure
that takes long keeps its state: where `rows` goes from item to item, or where probes are trained (`rankfall.train.resume.fit_or_resume`),
a job that is told to stop keeps what it has, and the next one goes on from there.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from rankfall import streams
from rankfall.annotations import DataFrame

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rankfall.design import Component, Designed
    from rankfall.nets.network import Network
    from rankfall.train.data import Data
    from rankfall.train.resume import Checkpoint

Rows = list[dict[str, Any]]
Parts = frozenset[tuple[str, "Component"]]  # kinds and components
T = TypeVar("T")


class RowCache(Protocol):
    """Where rows of items are kept by what the items are made of (`run/jobs/kept.py`)."""

    def keys(self, name: str, items: Sequence[Any], made: Sequence[Parts]) -> list[str]: ...

    def find(self, keys: Sequence[str]) -> dict[str, Rows]: ...

    def within(self, parts: Parts) -> AbstractContextManager[None]: ...

    def save(self, rows: Mapping[str, Rows]) -> None: ...


class NoCache:
    """For a measure that does not say what its items are made of, or is called outside a job."""

    def keys(self, name: str, items: Sequence[Any], made: Sequence[Parts]) -> list[str]:
        return [str(place) for place in range(len(items))]

    def find(self, keys: Sequence[str]) -> dict[str, Rows]:
        return {}

    def within(self, parts: Parts) -> AbstractContextManager[None]:
        return nullcontext()

    def save(self, rows: Mapping[str, Rows]) -> None:
        pass


class Uninterrupted:
    """The checkpoint of a measure that is called outside a job: nothing stops it, and nothing is kept."""

    def load(self, name: str) -> None:
        return None

    def after_step(self, name: str, step: int, state: "Callable[[], Mapping[str, Tensor]]") -> None:
        pass


@dataclass(frozen=True)
class Context:
    """Fields that a measure's NEEDS does not name are left empty."""

    network: "Network" = None  # type: ignore[assignment]
    data: "Data" = None  # type: ignore[assignment]
    cells: "Sequence[Designed]" = ()  # one for each member of the network
    table: Callable[[str], DataFrame | None] = lambda name: None  # None where this configuration makes no such table
    device: "torch.device | str" = "cpu"
    checkpoint: "Checkpoint" = field(default_factory=Uninterrupted)
    kept: RowCache = field(default_factory=NoCache)

    def stream(self, *names: str | int, member: int | None = None) -> np.random.Generator:
        """Random numbers of this purpose: the names begin with the measure's. A member's depend on the seed of its cell and on the names,
        not on the stack that it is in; without a member they are common to all.
        """
        return streams.stream(*((0, "common") if member is None else (self.cells[member].seed,)), *names)

    def rows(
        self,
        items: Iterable[T],
        rows_of: Callable[[T], Rows],
        name: str = "rows",
        made_of: "Callable[[T], Iterable[tuple[str, Component]]] | None" = None,
    ) -> Rows:
        """The rows of one item after another; those that a stopped job had are not computed again. `name` tells the calls of one measure
        apart. `made_of` says of which kinds and components an item is made: then a measure that needs nothing keeps its rows, for as long
        as the item (a dataclass or a JSON value), the code of these, the measure's own and its options, but for PARTS, are the same.
        They must depend on nothing else, and `rows_of` must load by itself what the item is made of."""
        import torch

        listed, kept = list(items), self.kept if made_of else NoCache()
        made = [frozenset(made_of(item) if made_of else ()) for item in listed]
        keys = kept.keys(name, listed, made)
        before, found = kept.find(keys), self.checkpoint.load(name)
        fresh: dict[str, Rows] = json.loads(found["rows"].numpy().tobytes()) if found else {}

        def state() -> "dict[str, Tensor]":
            text = json.dumps(fresh, default=lambda value: value.item()).encode()
            return {"rows": torch.frombuffer(bytearray(text), dtype=torch.uint8)}

        missing = [place for place, key in enumerate(keys) if key not in before and key not in fresh]
        for parts, places in groupby(missing, lambda place: made[place]):
            with kept.within(parts):
                for place in places:
                    fresh[keys[place]] = rows_of(listed[place])
                    self.checkpoint.after_step(name, place + 1, state)
        kept.save(fresh)
        rows = before | fresh
        return [row for key in keys for row in rows[key]]
