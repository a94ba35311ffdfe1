"""Sinks from the argument `to=`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rankfall.errors import RankfallError
from rankfall.watch.sinks.parquet import ParquetSink
from rankfall.watch.sinks.trackers import FunctionSink, WandbSink, metrics_sink, print_log, tensorboard_sink

ALLOWED = (
    "a path that ends in .parquet, 'stdout', 'tensorboard:FOLDER', a SummaryWriter, 'wandb', a run of wandb, 'trackio', 'mlflow', a "
    "function of rows, or a list of these"
)


class RowSink(Protocol):
    """A destination for the rows of each logged step."""

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None: ...
    def close(self) -> Any: ...


def open_sinks(to: Any) -> list[RowSink]:
    """Open one sink or several."""
    if isinstance(to, (list, tuple)):
        return [sink for destination in to for sink in open_sinks(destination)]
    return [open_sink(to)]


def open_sink(to: Any) -> RowSink:
    """Open the sink that `to` names."""
    if isinstance(to, (str, os.PathLike)) and Path(to).suffix == ".parquet":
        return ParquetSink(Path(to))
    if hasattr(to, "add_scalar") or (isinstance(to, str) and to.partition(":")[0] == "tensorboard"):
        return tensorboard_sink(to)
    if to == "wandb" or (hasattr(to, "define_metric") and hasattr(to, "log")):
        return WandbSink(None if to == "wandb" else to)
    if to == "trackio":
        return metrics_sink("trackio", "log")
    if to == "mlflow":
        return metrics_sink("mlflow", "log_metrics")
    if to == "stdout":
        return FunctionSink(print_log)
    if callable(to) and not isinstance(to, type):
        return FunctionSink(to)
    raise RankfallError(f"to={to!r} is not a destination for rows; supported are {ALLOWED}")
