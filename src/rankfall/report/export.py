"""Export of tables: CSV for spreadsheets and scripts, or a few rows for a terminal.

In CSV a null is an empty field, text is quoted, so that an empty text is `""`, and numbers have all their digits.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from rankfall.disk import atomic
from rankfall.errors import RankfallError, nearest
from rankfall.report.conform import declaration
from rankfall.report.tables import about_of, read

FORMS = ("csv", "parquet")
SHOWN = 10  # rows


def read_named(path: Path) -> pa.Table:
    """Read the table of a file, or raise an error that lists the tables of its folder."""
    if not path.is_file():
        there = sorted(other.stem for other in path.parent.glob("*.parquet"))
        near = nearest(path.stem, there)
        hint = f"; the nearest is {near!r}" if near else ""
        which = (
            f"has: {', '.join(there)}"
            if there
            else "has no tables; pass --results FOLDER, the folder of a run's results"
        )
        raise RankfallError(f"table {path.stem!r}: {path.parent} {which}{hint}")
    return read(path, path.stem)


def write(data: pa.Table, path: Path, form: str | None = None) -> None:
    """Write a table to a file in the format of its suffix, or in `form`."""
    form = form or path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise RankfallError(f"--out {path}: its suffix is neither {' nor '.join(f'.{one}' for one in FORMS)}")
    with atomic(path) as file:
        if form == "csv":
            to_csv(data, file)
        else:
            import pyarrow.parquet as pq

            pq.write_table(data, file, compression="zstd")


def to_csv(data: pa.Table, file: BinaryIO) -> None:
    from pyarrow import csv

    csv.write_csv(data, file)


def as_lines(data: pa.Table) -> Iterator[str]:
    """Yield the name of a table, its columns with their meanings, and its first rows."""
    table = declaration(about_of(data)["table"], data)
    yield f"{table.name}: {len(data)} rows, {len(data.column_names)} columns"
    width = max(len(column.name) for column in table.columns)
    for column in table.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        yield f"  {column.name:<{width}}  {column.type:<5}  {column.meaning}{unit}"
    own = [column.name for column in table.columns if _varies(data, column.name)]
    yield "first rows, of columns that vary (`--csv` prints all; a .parquet file opens in pandas: pandas.read_parquet):"
    frame = data.slice(0, SHOWN).select(own).to_pandas()
    yield from frame.to_string(index=False, max_colwidth=40, line_width=160).splitlines()


def _varies(data: pa.Table, column: str) -> bool:
    return len(data) == 1 or len(data[column].unique()) > 1
