"""Write a run to a Parquet file that is complete at every moment.

Each log rewrites the file under another name and renames it, so that a killed process leaves the last version. A run has few rows (one
per layer and log), so this takes milliseconds. A run is appended to an existing file as its next run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from rankfall.disk import atomic, describe_non_file
from rankfall.errors import RankfallError
from rankfall.watch.columns import SCHEMA

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
        self.table = pa.concat_tables([self.table, new])
        if self.table["run"].num_chunks > 64:
            self.table = self.table.combine_chunks()
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
