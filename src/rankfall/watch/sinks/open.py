"""Sinks from the argument `to=`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from rankfall.errors import RankfallError

NAMED = {
    "stdout": "StdoutSink", "tensorboard": "TensorBoardSink", "wandb": "WandbSink", "trackio": "TrackioSink", "mlflow": "MLflowSink",
    "parquet": "ParquetSink",
}  # fmt: skip
ALLOWED = (
    "a path that ends in .parquet, 'stdout', 'tensorboard:FOLDER', a SummaryWriter, 'wandb', a run of wandb, 'trackio', 'mlflow', a "
    "function of rows, or a list of these"
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
    kind, _, argument = to.partition(":") if isinstance(to, str) else ("", "", "")
    options: dict[str, Any] = {}
    if isinstance(to, (str, os.PathLike)) and Path(to).suffix == ".parquet":
        kind, options = "parquet", {"path": Path(to)}
    elif kind == "tensorboard":
        options = {"folder": argument or "runs"}
    elif hasattr(to, "add_scalar"):
        kind, options = "tensorboard", {"writer": to}
    elif hasattr(to, "define_metric") and hasattr(to, "log"):
        kind, options = "wandb", {"run": to}
    elif to not in ("stdout", "wandb", "trackio", "mlflow"):
        if callable(to) and not isinstance(to, type):
            return FunctionSink(to)
        raise RankfallError(f"to={to!r} is not a destination for rows; supported are {ALLOWED}")
    return cast("RowSink", getattr(import_module(f"rankfall.watch.sinks.{kind}"), NAMED[kind])(**options))
