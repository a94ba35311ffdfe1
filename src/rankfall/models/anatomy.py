"""The anatomy of a model, as surgery needs it: its residual additions, and where the state leaves each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankfall.streams.frames import Call, Operation

ATTENTION, MLP, JOIN = "attention", "mlp", "join"


@dataclass(frozen=True)
class Site:
    """One addition of the residual stream."""

    operation: Operation
    kind: str  # attention | mlp | join
    skip: int  # index of the operand that is the state; in a join, of the operand that is not the MLP
    layer: int  # 1, 2, ...
    residual_stream: int  # 0; XLNet's query stream is 1
    shape: tuple[int, ...]  # when recorded


@dataclass(frozen=True)
class Exit:
    """The part of a module's output that is the state leaving a layer."""

    call: Call
    path: tuple[Any, ...]
    residual_stream: int
    layer: int


@dataclass(frozen=True)
class Anatomy:
    """The residual additions of a model and the outputs of its layers."""

    sites: dict[Operation, Site]
    exits: tuple[Exit, ...]
    layers: int
    width: int
    residual_streams: int
    batch_axis: int  # of the state: 0, or 1 where it is (T, B, D)
    parallel: bool  # attention and MLP side by side, one skip for both
    removable: frozenset[Operation]  # products that only feed MLP branches

    def summary(self) -> str:
        """Return the number of additions, layers and features in one line."""
        kinds = [site.kind for site in self.sites.values()]
        parts = [f"{kinds.count(kind)} {kind}" for kind in (ATTENTION, MLP, JOIN) if kind in kinds]
        return f"{len(kinds)} residual additions in {self.layers} layers ({', '.join(parts)}), width {self.width}"
