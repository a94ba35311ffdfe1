"""A Parquet file that is whole at every moment: with each log it is written anew beside itself and renamed, so that a kill leaves
the last one.

Rows of a run are few (one a layer and log), so that this takes milliseconds. A file that is there already is appended to, as the next run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankfall.disk import atomic, describe_non_file
from rankfall.errors import RankfallError
from rankfall.watch.columns import SCHEMA

PATIENCE = 20.0  # times as long as writing took that is waited before the next, where it took long
LONG = 0.1  # seconds


class ParquetSink:
    """Appends the rows to one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        what = describe_non_file(path)
        if what is not None:
            raise RankfallError(f"to={str(path)!r} is {what}: name a file that is to be written, such as 'run.parquet'")
        self.table = read_table(path) if path.exists() else SCHEMA.empty_table()
        self.run = 1 + max(self.table["run"].to_pylist(), default=-1)
        self.waiting: list[Mapping[str, Any]] = []
        self.next = 0.0  # not before this time
        if not path.exists():
            self.save()  # so that a place that cannot be written to is found before any training

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.waiting.extend(row | {"run": self.run} for row in map(dict, rows))
        if time.monotonic() >= self.next:
            self.flush()

    def flush(self) -> None:
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

    def close(self) -> None:
        self.flush()


def read_table(path: Path) -> pa.Table:
    """The table of a watched run. Raise where the file is none."""
    try:
        found = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise RankfallError(
            f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}; name another file, or remove it"
        ) from error
    if found.schema.names != SCHEMA.names:
        raise RankfallError(
            f"{path} is no table of a watched run: its columns are {', '.join(found.schema.names[:6])}, ...; name another file"
        )
    return found.cast(SCHEMA)
