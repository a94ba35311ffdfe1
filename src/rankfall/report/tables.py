"""Tables on disk: Parquet files that agree with their declaration, in one canonical order, with what made them in the
metadata.

Writing checks names, types, nulls, NaN and duplicates; reading checks the schema. Two tables made from the same
inputs have the same bytes but for the recorded time. Rows of a cell that is not done may leave everything but the
cell's own columns empty.
"""

from __future__ import annotations

import datetime
import difflib
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankfall import __version__
from rankfall.disk import atomic
from rankfall.errors import RankfallError
from rankfall.report.schema import CELL_COLUMNS, Table, schema

if TYPE_CHECKING:
    import pandas as pd

ARROW = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
PACKAGES = ("torch", "transformers", "snakemake", "numpy", "pyarrow")


def provenance(config: str = "", cell_keys: Iterable[str] = (), device: str = "") -> dict[str, str]:
    """What a table's metadata says about its writing: digests of config and cells, versions (without importing
    anything), time. Where a cell was trained, maybe earlier and elsewhere, is in its row.
    """
    versions = {"python": platform.python_version()} | {package: _version(package) for package in PACKAGES}
    return {
        "config": config,
        "cells": hashlib.sha256("\n".join(sorted(set(cell_keys))).encode()).hexdigest()[:16],
        "device": device,
        "rankfall": __version__,
        "versions": json.dumps(versions),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def conform(name: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Table:
    """Rows as a table of the declared schema, checked and sorted; a nullable column may be absent."""
    table = schema(name)
    declared = {column.name: column for column in table.columns}
    given = rows.column_names if isinstance(rows, pa.Table) else sorted({column for row in rows for column in row})
    for unknown in [column for column in given if column not in declared]:
        near = difflib.get_close_matches(unknown, declared, 1)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        raise RankfallError(f"table {name}: column {unknown!r} is not declared{hint} (report/schemas/{name}.py)")
    lenient = table.cells and "status" in given
    arrays = {}
    for column in table.columns:
        if column.name in given:
            arrays[column.name] = _array(name, column.name, ARROW[column.type], rows)
        elif column.nullable or not len(rows) or (lenient and column not in CELL_COLUMNS):
            arrays[column.name] = pa.nulls(len(rows), ARROW[column.type])
        else:
            raise RankfallError(f"table {name}: column {column.name!r} is missing and not nullable")
    data = pa.table(arrays, schema=_arrow_schema(table))
    _check_values(table, data)
    data = data.take(pc.sort_indices(data, sort_keys=[(column, "ascending") for column in table.order]))
    return data.combine_chunks()


def write(
    name: str, rows: Sequence[Mapping[str, Any]] | pa.Table, path: Path, meta: Mapping[str, str] | None = None
) -> None:
    """Check, sort and write one table atomically; `meta` is what `provenance` returns."""
    data = conform(name, rows)
    about = {"table": name, "schema": schema(name).version} | dict(provenance() if meta is None else meta)
    data = data.replace_schema_metadata({f"rankfall.{key}": value for key, value in sorted(about.items())})
    with atomic(Path(path)) as handle:
        pq.write_table(data, handle, compression="zstd", write_page_checksum=True)


def read(path: Path, name: str | None = None) -> pa.Table:
    """One table, its schema checked against the declaration; `name` says which table is expected."""
    path = Path(path)
    try:
        data = pq.read_table(path, page_checksum_verification=True, partitioning=None)
    except FileNotFoundError:
        raise RankfallError(f"{path} is missing: run the step that makes it") from None
    except (pa.ArrowException, OSError) as error:
        line = (str(error).splitlines() or [""])[0]
        raise RankfallError(f"{path} cannot be read ({line}): remove it and run again") from None
    about = about_of(data)
    found = about.get("table")
    if found is None:
        raise RankfallError(f"{path} is not a table of Rankfall")
    if name is not None and found != name:
        raise RankfallError(f"{path} holds the table {found!r}, not {name!r}: remove it and run again")
    table = schema(found)
    columns = [column.name for column in table.columns]
    if about.get("schema") != table.version or data.column_names != columns:
        extra, lacking = set(data.column_names) - set(columns), set(columns) - set(data.column_names)
        detail = [f"extra {sorted(extra)}"] * bool(extra) + [f"lacking {sorted(lacking)}"] * bool(lacking)
        how = ", ".join(detail) or "order or types"
        raise RankfallError(f"{path} has another schema than this version's {found} ({how}): run the step again")
    return data


def read_frame(path: Path, name: str | None = None) -> pd.DataFrame:
    """One table for plotting; whole numbers and booleans with nulls become pandas' nullable types."""
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    data = read(path, name)
    frame = data.to_pandas()
    for field in data.schema:
        if field.type in nullable and data[field.name].null_count:
            frame[field.name] = data[field.name].to_pandas(types_mapper=nullable.get)
    return frame


class PlannedFile(Protocol):
    """A file that a table is combined from: what it must have been made for, and the cells that its rows may be of."""

    @property
    def path(self) -> str: ...
    @property
    def made(self) -> str: ...
    @property
    def keys(self) -> frozenset[str] | None: ...


def combine(
    name: str, planned: Sequence[PlannedFile], path: Path, config: str = "", made: Mapping[str, str] | None = None
) -> int:
    """One table from its planned parts; returns its number of rows. No parts make an empty table."""
    parts = [read_part(name, part) for part in planned]
    if parts:
        data = pa.concat_tables([part.replace_schema_metadata(None) for part in parts])
    else:
        data = pa.schema([(column.name, ARROW[column.type]) for column in schema(name).columns]).empty_table()
    keys = data["key"].unique().to_pylist() if "key" in data.column_names else []
    devices = sorted({about_of(part).get("device", "") for part in parts} - {""})
    write(name, data, path, provenance(config, keys, ", ".join(devices)) | dict(made or {}))
    return len(data)


def read_part(name: str, part: PlannedFile) -> pa.Table:
    """One part; refused if it was made for something else, or has rows of other cells."""
    data = read(Path(part.path), name)
    check_made(Path(part.path), part.made, data)
    foreign = set(data["key"].unique().to_pylist()) - part.keys if part.keys is not None else set()
    if foreign:
        raise RankfallError(
            f"{part.path} has rows of {len(foreign)} cells that are not in the plan: remove it and run again"
        )
    return data


def check_made(path: Path, made: str, data: pa.Table | None = None) -> None:
    """Refuse a table that says it was made for something else than was planned."""
    if about_of(read(path) if data is None else data).get("made") != made:
        raise RankfallError(
            f"{path} was made for another configuration or by other code: run again, and it is made again"
        )


def about_of(data: pa.Table) -> dict[str, str]:
    """What a table's metadata says about its making."""
    pairs = {key.decode(): value.decode() for key, value in (data.schema.metadata or {}).items()}
    return {key.removeprefix("rankfall."): value for key, value in pairs.items() if key.startswith("rankfall.")}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _arrow_schema(table: Table) -> pa.Schema:
    return pa.schema(
        [
            pa.field(column.name, ARROW[column.type], metadata={"unit": column.unit, "meaning": column.meaning})
            for column in table.columns
        ]
    )


def _array(name: str, column: str, wanted: pa.DataType, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Array:
    """One column in its declared type; whole numbers pass for floats, and nothing else is converted."""
    try:
        # Inferred first: told the type at once, pyarrow would take 1.5 for 1 without a word.
        values = rows[column] if isinstance(rows, pa.Table) else pa.array([row.get(column) for row in rows])
        given = values.type
        if pa.types.is_dictionary(given):
            given = given.value_type
        number = pa.types.is_integer(given) or pa.types.is_floating(given)
        fits = (
            given == wanted
            or pa.types.is_null(given)
            or (pa.types.is_large_string(given) and pa.types.is_string(wanted))
            or (number and pa.types.is_floating(wanted))
            or (pa.types.is_integer(given) and pa.types.is_integer(wanted))
        )
        if not fits:
            raise pa.ArrowTypeError(f"it has type {given}")
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        line = str(error).splitlines()[0]
        raise RankfallError(f"table {name}: column {column!r} is not all {wanted}: {line}") from None


def _check_values(table: Table, data: pa.Table) -> None:
    exempt = None  # rows of cells that are not done, where only the cell's own columns are due
    if table.cells and len(data):
        exempt = pc.fill_null(pc.not_equal(data["status"], "done"), False)
    for column in table.columns:
        values = data[column.name]
        if not column.nullable:
            bad = pc.is_null(values)
            if exempt is not None and column not in CELL_COLUMNS:
                bad = pc.and_not(bad, exempt)
            if pc.any(bad).as_py():
                raise RankfallError(
                    f"table {table.name}: column {column.name!r} has a null, row {pc.index(bad, True).as_py()}"
                )
        if column.type == "float" and not column.nan:
            bad = pc.fill_null(pc.is_nan(values), False)
            if pc.any(bad).as_py():
                raise RankfallError(
                    f"table {table.name}: column {column.name!r} has a NaN, row {pc.index(bad, True).as_py()}"
                )
    identity = list(table.identity)
    if identity:
        groups = data.select(identity).group_by(identity).aggregate([([], "count_all")])
        if len(groups) < len(data):
            index = pc.index(pc.greater(groups["count_all"], 1), True).as_py()
            row = {column: groups[column][index].as_py() for column in identity}
            raise RankfallError(f"table {table.name}: {groups['count_all'][index]} rows with the same key {row}")
