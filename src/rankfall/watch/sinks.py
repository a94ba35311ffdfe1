"""Sinks for the rows of a watched run, from the argument `to=`: a Parquet file, trackers of experiments, functions.

The Parquet file is complete at every moment. Each log rewrites it under another name and renames it, so that a killed process leaves the
last version. A run has few rows (one per layer and log), so this takes milliseconds. A run is appended to an existing file as its next run.

Trackers receive the curves of a run, such as `rankfall/residual/layer_03`. Each is imported only when used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from rankfall.disk import atomic, describe_non_file
from rankfall.errors import RankfallError
from rankfall.watch.columns import SCHEMA, curves_of

PATIENCE = 20.0  # times the duration of a slow write until the next, so that writing takes at most 5% of the time
LONG = 0.1  # seconds; a longer write is slow
FILES: WeakValueDictionary[Path, RunFile] = WeakValueDictionary()  # that watchers of this process write to


class RunFile:
    """The table of a file. Watchers of one process share it, so that each adds its own run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kind = describe_non_file(path)
        if kind is not None:
            raise RankfallError(f"to={str(path)!r} is {kind}: name a file to write, such as 'run.parquet'")
        self.table = read_table(path) if path.exists() else SCHEMA.empty_table()
        self.runs = 1 + max(self.table["run"].to_pylist(), default=-1)
        self.waiting: list[Mapping[str, Any]] = []
        self.next = 0.0  # earliest time of the next write
        self.saved = self.stamp()
        if not path.exists():
            self.save()  # so that a path that cannot be written fails before any training

    def stamp(self) -> int:
        """Return when the file was last written; 0 if there is none."""
        return self.path.stat().st_mtime_ns if self.path.exists() else 0

    def flush(self) -> None:
        """Add the waiting rows to the table and write the file."""
        if not self.waiting:
            return
        began = time.monotonic()
        new = pa.Table.from_pylist(self.waiting, SCHEMA)
        self.table = pa.concat_tables([self.table, new]).combine_chunks()
        self.save()
        self.waiting = []
        took = time.monotonic() - began
        self.next = time.monotonic() + (PATIENCE * took if took > LONG else 0.0)

    def save(self) -> None:
        with atomic(self.path) as handle:
            pq.write_table(self.table, handle)
        self.saved = self.stamp()


class ParquetSink:
    """Add a run to a file."""

    def __init__(self, path: Path) -> None:
        file = FILES.get(path.resolve())
        if file is None or file.saved != file.stamp():  # the user has removed or replaced it
            file = FILES[path.resolve()] = RunFile(path)
        self.file, self.run = file, file.runs
        file.runs += 1

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.file.waiting.extend(row | {"run": self.run} for row in map(dict, rows))
        if time.monotonic() >= self.file.next:
            self.file.flush()

    def close(self) -> None:
        self.file.flush()


def read_table(path: Path) -> pa.Table:
    """Read the table of a watched run. Raise an error for any other file."""
    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise RankfallError(
            f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}; name another file, or remove it"
        ) from error
    if not {"run", "step", "layer", "residual"} <= set(table.schema.names) <= set(SCHEMA.names):
        raise RankfallError(
            f"{path} is not a table of a watched run: its columns are {', '.join(table.schema.names[:6])}, ...; name another file"
        )
    return pa.Table.from_pylist(table.to_pylist(), SCHEMA)  # columns that an earlier version did not write are null


Rows = Sequence[Mapping[str, Any]]
INSTALL = {
    "torch.utils.tensorboard": "pip install 'rankfall[watch]'", "wandb": "pip install 'rankfall[watch]'",
    "trackio": "pip install trackio", "mlflow": "pip install mlflow",
}  # fmt: skip
SHOWN = ("residual", "entropy", "norm")


def import_tracker(name: str, to: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise RankfallError(f"to={to!r} needs {name.rpartition('.')[2]}: {INSTALL[name]}") from error


class FunctionSink:
    """Call a function with the rows of each log, as a list of dicts, and `close` at the end."""

    def __init__(
        self, function: Callable[[list[dict[str, Any]]], Any], close: Callable[[], Any] = lambda: None
    ) -> None:
        self.function, self.close = function, close

    def write(self, rows: Rows) -> None:
        self.function([dict(row) for row in rows])


def print_log(rows: Rows) -> None:
    """Print a line: the loss, and a few quantities in the first and the last layer."""
    parts = [] if rows[0]["loss"] is None else [f"loss {rows[0]['loss']:.4g}"]
    for name in SHOWN:
        known = [row for row in rows if row[name] is not None]
        if known:
            ends = [f"{row[name]:.3g} (layer {row['layer']})" for row in (known[0], known[-1])]
            parts.append(f"{name} {' to '.join(dict.fromkeys(ends))}")
    print(f"rankfall step {rows[0]['step']}: {', '.join(parts)}", flush=True)


def metrics_sink(name: str, function: str) -> FunctionSink:
    """Log to the active run of Trackio or MLflow, at the steps of the training. Trackio's own calls pass `step=`, too."""
    log = getattr(import_tracker(name, name), function)
    return FunctionSink(lambda rows: log(curves_of(rows), step=rows[0]["step"]))


def tensorboard_sink(to: Any) -> FunctionSink:
    """Add scalars to the user's SummaryWriter, or to a new one in 'tensorboard:FOLDER'."""
    writer = to
    if isinstance(to, str):
        writer = import_tracker("torch.utils.tensorboard", to).SummaryWriter(to.partition(":")[2] or "runs")

    def write(rows: Rows) -> None:
        for name, value in curves_of(rows).items():
            writer.add_scalar(name, value, rows[0]["step"], rows[0]["time"])
        writer.flush()

    return FunctionSink(write, writer.close if writer is not to else writer.flush)


class WandbSink:
    """Log to a run of Weights & Biases, over `rankfall/step`, so that the run's step counter is not affected."""

    def __init__(self, run: Any = None) -> None:
        run = import_tracker("wandb", "wandb").run if run is None else run
        if run is None:
            raise RankfallError(
                "to='wandb' writes to the active run, and there is none: call wandb.init(...) before, or give the run, "
                "to=wandb.init(...)"
            )
        self.run = run
        self.open_at: int | None = None  # the run's step in which the last values wait
        run.define_metric("rankfall/step")
        run.define_metric("rankfall/*", step_metric="rankfall/step")

    def write(self, rows: Rows) -> None:
        self.close()
        # These values join what the user logs next.
        self.run.log({"rankfall/step": rows[0]["step"], **curves_of(rows)}, commit=False)
        self.open_at = self.run.step

    def close(self) -> None:
        """Commit the last values if the user has logged nothing since: those of the next step would replace them. The run stays open."""
        if self.open_at is not None and self.run.step == self.open_at:
            self.run.log({}, commit=True)
        self.open_at = None


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
