"""Store measured rows in Parquet files under measures/<measure>/, each of which covers the measure keys of a batch of cells.

The file name ends in the SHA-256 of the content, so any Parquet reader opens the file and any damage shows. A file also covers keys whose
measurement gave no rows. Rows have only the measure's columns: a cell's labels are not part of its key, and are joined when a table is
written. <measure> is the name of the component, since labels may change. Rows of single items of a measure are in
`measures/<measure>+items/`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankfall.disk import write
from rankfall.errors import RankfallError
from rankfall.run.store.files import Damaged, Vault

SUFFIX = ".parquet"
ITEMS = "+items"  # suffix of a measure's name: rows of its items, each with its own key (`run/jobs/row_keeper.py`)
INDEX = "__key"  # the column with the index of a row's key in the file
KEYS, MEASURE = b"rankfall.keys", b"rankfall.measure"


def folder_of(measure: str) -> str:
    """Return the folder of a measure's rows. `mylab.curves:Drift` becomes a name that every file system supports."""
    return f"measures/{measure.replace(':', '.')}"


class StoredRows(Vault):
    """Files measures/<measure>/<keys>-<content>.parquet."""

    def save_rows(self, name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
        """Store measured rows by measure key: the measure's columns, no labels. A key without rows counts as measured too."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        keys = sorted(rows)
        flat = [{**row, INDEX: index} for index, key in enumerate(keys) for row in rows[key]]
        columns = sorted({column for row in flat for column in row} | {INDEX})
        try:
            table = pa.table({column: pa.array([row.get(column) for row in flat]) for column in columns})
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise RankfallError(f"rows of measure {name} do not fit a table: {error}") from None
        buffer = io.BytesIO()
        metadata = {KEYS: json.dumps(keys), MEASURE: name}
        pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd")
        content = buffer.getvalue()
        identity, digest = (hashlib.sha256(text).hexdigest() for text in ("\n".join(keys).encode(), content))
        path = self.root / folder_of(name) / f"{identity[:16]}-{digest}{SUFFIX}"
        write(path, content)
        self.keep(path)
        return path

    def find_covered(self, name: str) -> dict[str, Path]:
        """Return key -> the first file by name of this measure that covers it. Only footers are read."""
        files: dict[str, Path] = {}
        for entry in self.files(folder_of(name), SUFFIX):
            for key in self.read_once(entry, _read_keys) or ():
                files.setdefault(key, Path(entry.path))
        return files

    def find_rows(self, name: str, keys: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Return key -> measured rows. Keys that are absent from the result must be measured."""
        found = self.read_keys(keys, lambda _: self.find_covered(name), read_rows)
        return {key: rows for stored in found for key, rows in stored.items()}


def _read_keys(path: Path) -> list[str]:
    """Return the keys that a file covers, from its footer. Raise `Damaged` or OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        keys: list[str] = json.loads(pq.read_metadata(path).metadata[KEYS])
    except (pa.ArrowException, KeyError, TypeError, ValueError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # pyarrow's error for a file that cannot be decoded has none
            raise
        raise Damaged("its footer is not that of a Parquet file with keys") from None
    return keys


def read_rows(path: Path, keys: Collection[str] | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return key -> rows of a file for these keys (None: all), checked. Raise `Damaged` or OSError."""
    import pyarrow.parquet as pq

    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != path.stem.rpartition("-")[2]:
        raise Damaged("its content does not match the checksum in its name")
    table = pq.read_table(io.BytesIO(content))
    covered = json.loads(table.schema.metadata[KEYS])
    rows: dict[str, list[dict[str, Any]]] = {key: [] for key in covered}
    for row in table.to_pylist():
        rows[covered[row.pop(INDEX)]].append(row)
    return rows if keys is None else {key: rows[key] for key in keys}
