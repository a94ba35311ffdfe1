"""Sinks from the argument `to=`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rankfall.errors import RankfallError

ALLOWED = (
    "a path that ends in .parquet, 'tensorboard:FOLDER', a SummaryWriter, 'wandb', a run of wandb, a function of rows, "
    "or a list of these"
)


class RowSink(Protocol):
    """A destination for the rows of each logged step."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None: ...
    def close(self) -> None: ...


class FunctionSink:
    """Calls a function with the rows, as a list of dicts."""

    def __init__(self, function: Callable[[list[dict[str, Any]]], Any]) -> None:
        self.function = function

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.function([dict(row) for row in rows])

    def close(self) -> None:
        """Do nothing: the function belongs to the user."""


def open_sinks(to: Any) -> list[RowSink]:
    """Open one sink or several."""
    if isinstance(to, (list, tuple)):
        return [sink for one in to for sink in open_sinks(one)]
    return [open_sink(to)]


def open_sink(to: Any) -> RowSink:
    if isinstance(to, str) and to.partition(":")[0] == "tensorboard":
        from rankfall.watch.sinks.tensorboard import TensorBoardSink

        return TensorBoardSink(to.partition(":")[2] or "runs")
    if isinstance(to, str) and to == "wandb":
        from rankfall.watch.sinks.wandb import WandbSink

        return WandbSink()
    if isinstance(to, (str, os.PathLike)) and Path(to).suffix == ".parquet":
        from rankfall.watch.sinks.parquet import ParquetSink

        return ParquetSink(Path(to))
    if hasattr(to, "add_scalar"):
        from rankfall.watch.sinks.tensorboard import TensorBoardSink

        return TensorBoardSink(writer=to)
    if hasattr(to, "define_metric") and hasattr(to, "log"):
        from rankfall.watch.sinks.wandb import WandbSink

        return WandbSink(to)
    if callable(to) and not isinstance(to, type):
        return FunctionSink(to)
    raise RankfallError(f"to={to!r} is not a destination for rows; supported are {ALLOWED}")
