"""What every measure is given: one object with its inputs, its random numbers, and a way to stop and go on.

A measure of cells reads `network`, the cells of a stack as one, its `data` and its `cells`; a measure of tables `table(name)`. A measure
that takes long keeps its state: where `rows` goes from item to item, or where probes are trained (`rankfall.train.resume.fit_resumed`),
a job that is told to stop keeps what it has, and the next one goes on from there.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rankfall import streams

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame
    from torch import Tensor

    from rankfall.design import Designed
    from rankfall.nets.network import Network
    from rankfall.train.data import Data
    from rankfall.train.resume import Checkpoint

Rows = list[dict[str, Any]]
T = TypeVar("T")


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
    table: "Callable[[str], DataFrame | None]" = lambda name: None  # None where this configuration makes no such table
    device: "torch.device | str" = "cpu"
    checkpoint: "Checkpoint" = field(default_factory=Uninterrupted)

    def stream(self, *names: str | int, member: int | None = None) -> np.random.Generator:
        """Random numbers of this purpose: the names begin with the measure's. A member's depend on the seed of its cell and on the names,
        not on the stack that it is in; without a member they are common to all.
        """
        return streams.stream(*((0, "common") if member is None else (self.cells[member].seed,)), *names)

    def rows(self, items: Iterable[T], rows_of: Callable[[T], Rows], name: str = "rows") -> Rows:
        """The rows of one item after another; those that a stopped job had are not computed again."""
        import torch

        found = self.checkpoint.load(name)
        rows: Rows = json.loads(found["rows"].numpy().tobytes()) if found else []

        def state() -> "dict[str, Tensor]":
            text = json.dumps(rows, default=lambda value: value.item()).encode()
            return {"rows": torch.frombuffer(bytearray(text), dtype=torch.uint8), "done": torch.tensor(done)}

        done = int(found["done"]) if found else 0
        for item in list(items)[done:]:
            rows += rows_of(item)
            done += 1
            self.checkpoint.after_step(name, done, state)
        return rows
