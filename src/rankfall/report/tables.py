"""Tables on disk: Parquet files that match their declaration, sorted in canonical order, with their provenance in the metadata.

Writing checks names, types, nulls, NaN and duplicates; reading checks the schema. Two tables from the same inputs have the same bytes
except for the recorded time. Rows of a cell that is not done need only the columns of the cell.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankfall import __version__
from rankfall.annotations import DataFrame
from rankfall.disk import atomic
from rankfall.disk import write as write_file
from rankfall.errors import RankfallError, suggest
from rankfall.modules import version_of
from rankfall.report.conform import conform, declaration
from rankfall.report.quantities import set_user_headlines, user_quantities
from rankfall.report.schema import finds_headlines, schema

MODULES = "modules"
PACKAGES = ("torch", "transformers", "snakemake", "numpy", "pyarrow")


def provenance(config: str = "", cell_keys: Iterable[str] = (), device: str = "") -> dict[str, str]:
    """Return the provenance for a table's metadata: digests of configuration and cells, versions (without importing anything), device and
    time of writing. The machine that trained a cell is in the row of the cell.
    """
    versions = {"python": platform.python_version()} | {package: version_of(package) for package in PACKAGES}
    return {
        "config": config,
        "cells": hashlib.sha256("\n".join(sorted(set(cell_keys))).encode()).hexdigest()[:16],
        "device": device,
        "rankfall": __version__,
        "versions": json.dumps(versions),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def write(
    name: str, rows: Sequence[Mapping[str, Any]] | pa.Table, path: Path, meta: Mapping[str, str] | None = None
) -> None:
    """Check and sort a table and write it atomically. `meta`: result of `provenance`."""
    data = conform(name, rows)
    entries = {"table": name, "schema": schema(name).version} | dict(provenance() if meta is None else meta)
    if user_quantities() and finds_headlines(name):  # it has columns of users' modules
        entries[MODULES] = " ".join(user_quantities())
    data = data.replace_schema_metadata({f"rankfall.{key}": value for key, value in sorted(entries.items())})
    buffer = io.BytesIO()
    pq.write_table(data, buffer, compression="zstd")
    write_file(Path(path), buffer.getvalue())


def read(path: Path, name: str | None = None) -> pa.Table:
    """Read a table and check its schema against the declaration. `name`: the expected table."""
    path = Path(path)
    # `pq.read_table` would add columns for folders with a `=` in their names.
    data: pa.Table = open_table(path, lambda path: pq.ParquetFile(path).read())
    entries = about_of(data)
    written = entries.get("table")
    if written is None:
        raise RankfallError(f"{path} is not a table of Rankfall")
    if name is not None and written != name:
        raise RankfallError(f"{path} holds the table {written!r}, not {name!r}: remove it and run again")
    if finds_headlines(written):
        set_user_headlines(entries.get(MODULES, "").split())
    table = schema(written)
    if table.inferred:
        return data
    columns = [column.name for column in table.columns]
    if entries.get("schema") != table.version or data.column_names != columns:
        extra, lacking = set(data.column_names) - set(columns), set(columns) - set(data.column_names)
        detail = [f"extra {sorted(extra)}"] * bool(extra) + [f"lacking {sorted(lacking)}"] * bool(lacking)
        how = ", ".join(detail) or "order or types"
        raise RankfallError(f"{path} has another schema than this version's {written} ({how}): run the step again")
    return data


def open_table(path: Path, how: Callable[[Path], Any]) -> Any:
    """Read a Parquet file, or its schema, with the function `how`. Raise if the file is missing or damaged."""
    try:
        return how(path)
    except FileNotFoundError:
        raise RankfallError(f"{path} is missing: run the step that writes it") from None
    except (pa.ArrowException, OSError) as error:
        line = (str(error).splitlines() or [""])[0]
        raise RankfallError(f"{path} cannot be read ({line}): remove it and run again") from None


def read_frame(path: Path, name: str | None = None) -> DataFrame:
    """Read a table as a DataFrame. Integers and booleans with nulls become pandas' nullable types."""
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    data = read(path, name)
    frame = data.to_pandas()
    for field in data.schema:
        if field.type in nullable and data[field.name].null_count:
            frame[field.name] = data[field.name].to_pandas(types_mapper=nullable.get)
    return frame


def combine(name: str, paths: Sequence[Path], out: Path, config: str = "") -> int:
    """Write one table from its parts and return its number of rows. Without parts the table is empty."""
    parts = [read(path, name) for path in paths]
    bare = [part.replace_schema_metadata(None) for part in parts]
    # Where columns are inferred, one part may hold integers where another one holds floats.
    try:
        data = pa.concat_tables(bare, promote_options="permissive") if bare else conform(name, [])
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        line = str(error).splitlines()[0]
        raise RankfallError(
            f"table {name}: its rows have other types for other networks ({line})\nfix: give a column one type everywhere"
        ) from None
    keys = data["key"].unique().to_pylist() if "key" in data.column_names else []
    devices = sorted({about_of(part).get("device", "") for part in parts} - {""})
    write(name, data, out, provenance(config, keys, ", ".join(devices)))
    return len(data)


def about_of(data: pa.Table | pa.Schema) -> dict[str, str]:
    """Return the entries of a table's metadata that Rankfall wrote."""
    stored = (data if isinstance(data, pa.Schema) else data.schema).metadata or {}
    pairs = {key.decode(): value.decode() for key, value in stored.items()}
    return {key.removeprefix("rankfall."): value for key, value in pairs.items() if key.startswith("rankfall.")}


FORMS = ("csv", "parquet")
SHOWN = 10  # rows


def read_named(path: Path) -> pa.Table:
    """Read the table of a file, or raise an error that lists the tables of its folder."""
    if not path.is_file():
        names = sorted(other.stem for other in path.parent.glob("*.parquet"))
        listed = f"has: {', '.join(names)}{suggest(path.stem, names)}"
        empty = "has no tables; pass --results FOLDER, the folder of a run's results"
        raise RankfallError(f"table {path.stem!r}: {path.parent} {listed if names else empty}")
    return read(path, path.stem)


def select_columns(data: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return these columns of a table, or raise an error that lists those that it has."""
    unknown = [name for name in columns if name not in data.column_names]
    if unknown or not columns:
        problem = f"the table has no column {unknown[0]!r}" if unknown else "name the columns of a LaTeX table"
        close = suggest(unknown[0], data.column_names) if unknown else ""
        raise RankfallError(f"--columns: {problem}{close}\nfix: choose from {', '.join(data.column_names)}")
    return data.select(columns)


def export(data: pa.Table, path: Path, form: str | None = None) -> None:
    """Write a table to a file in the format of its suffix, or in `form`."""
    from pyarrow import csv

    form = form or path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise RankfallError(f"--out {path}: its suffix is neither {' nor '.join(f'.{suffix}' for suffix in FORMS)}")
    with atomic(path) as file:
        if form == "csv":
            csv.write_csv(data, file)
        else:
            pq.write_table(data, file, compression="zstd")


def describe_table(data: pa.Table) -> Iterator[str]:
    """Yield the name of a table, its columns with their meanings, and its first rows."""
    table = declaration(about_of(data)["table"], dict(zip(data.column_names, data.columns)))
    shown = [column for column in table.columns if column.name in data.column_names]
    yield f"{table.name}: {len(data)} rows, {len(data.column_names)} columns"
    width = max(len(column.name) for column in shown)
    for column in shown:
        unit = f" [{column.unit}]" if column.unit else ""
        yield f"  {column.name:<{width}}  {column.type:<5}  {column.meaning}{unit}"
    varied = [name for name in data.column_names if len(data) == 1 or len(data[name].unique()) > 1]
    yield "first rows, of columns that vary (`--csv` prints all; a .parquet file opens in pandas: pandas.read_parquet):"
    frame = data.slice(0, SHOWN).select(varied).to_pandas()
    yield from frame.to_string(index=False, max_colwidth=40, line_width=160).splitlines()
