"""Conversion of rows to a declared table: columns, types, nulls, NaN and duplicates are checked, and rows are sorted.

The content of a file of rows depends on this module, so its code is in the digest of the file (`run/snakemake/jobs.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankfall.errors import RankfallError, suggest
from rankfall.report.schema import CELL_COLUMNS, Column, Table, schema

Columns = Mapping[str, Any]  # name -> array of pyarrow
ARROW = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def conform(name: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Table:
    """Convert rows to a table of the declared schema, checked and sorted. A nullable column may be absent."""
    values = read_columns(name, rows)
    table = declaration(name, values)
    declared = [column.name for column in table.columns]
    for unknown in [] if table.inferred else [column for column in values if column not in declared]:
        hint = suggest(unknown, declared)
        raise RankfallError(f"table {name}: column {unknown!r} is not declared{hint} (`columns` of {name})")
    lenient = table.cells and "status" in values
    arrays = {}
    for column in table.columns:
        if column.name in values:
            arrays[column.name] = _cast(name, column, values[column.name])
        elif column.nullable or not len(rows) or (lenient and column not in CELL_COLUMNS):
            arrays[column.name] = pa.nulls(len(rows), ARROW[column.type])
        else:
            raise RankfallError(f"table {name}: column {column.name!r} is missing and not nullable")
    fields = [
        pa.field(column.name, ARROW[column.type], metadata={"unit": column.unit, "meaning": column.meaning})
        for column in table.columns
    ]
    data = pa.table(arrays, schema=pa.schema(fields))
    _check_values(table, data)
    if table.order:
        data = data.take(pc.sort_indices(data, sort_keys=[(column, "ascending") for column in table.order]))
    return data.combine_chunks()


def read_columns(name: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> Columns:
    """Return the columns of rows, in the types of their values."""
    if isinstance(rows, pa.Table):
        return dict(zip(rows.column_names, rows.columns))
    columns = {}
    for column in dict.fromkeys(column for row in rows for column in row):
        try:
            columns[column] = pa.array([row.get(column) for row in rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            line = str(error).splitlines()[0]
            problem = f"mixes types or holds no plain values: {line}"
            raise RankfallError(f"table {name}: column {column!r} {problem}") from None
    return columns


def declaration(name: str, values: Columns) -> Table:
    """Return the declaration of a table. If its own columns are those of its rows, they are named and typed by these rows."""
    table = schema(name)
    if not table.inferred:
        return table
    shared = {column.name for column in CELL_COLUMNS} if table.cells else set()
    types = {column: _infer_type(name, column, values[column].type) for column in values if column not in shared}
    types = {column: kind for column, kind in types.items() if kind}
    columns = tuple(Column(column, kind, "as the measure gives it", nullable=True) for column, kind in types.items())
    floats = tuple(column for column, kind in types.items() if kind == "float")
    keys = tuple(column for column in types if column not in floats)  # these distinguish rows if they can
    declared = replace(table, own=columns, key=keys)
    identity = {column: values[column] for column in declared.identity if column in values}
    groups = pa.table(identity).group_by(list(identity)).aggregate([]) if identity else ()
    is_key = len(groups) == len(next(iter(values.values()), ()))
    return declared if is_key else replace(declared, key=(*keys, *floats))


def _infer_type(name: str, column: str, kind: pa.DataType) -> str:
    """Return the declared type for a type of values; empty for a column without a value."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "int" if pa.types.is_integer(kind) else "float"
    words = {arrow: word for word, arrow in ARROW.items()} | {pa.null(): ""}
    if kind not in words:
        raise RankfallError(
            f"table {name}: column {column!r} has values of type {kind}\n"
            f"fix: give numbers, texts, or true and false, with float(value) or value.item() for a tensor"
        )
    return words[kind]


def _cast(name: str, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in its declared type. Integers are converted to floats; any other mismatch is an error."""
    declared = ARROW[column.type]
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    is_integer = pa.types.is_integer(kind)
    fits = (
        kind == declared
        or pa.types.is_null(kind)
        or (pa.types.is_large_string(kind) and pa.types.is_string(declared))
        or ((is_integer or pa.types.is_floating(kind)) and pa.types.is_floating(declared))
        or (is_integer and pa.types.is_integer(declared))
    )
    if not fits:  # pyarrow would silently convert 1.5 to 1
        raise RankfallError(f"table {name}: column {column.name!r} has values that are not {declared}: they are {kind}")
    return values.cast(declared)


def _check_values(table: Table, data: pa.Table) -> None:
    """Raise an error for nulls, NaN and numbers that a column does not allow, and for rows with the same key."""

    def refuse(column: Column, invalid: Any, problem: str, fix: str = "") -> None:
        """Raise an error for the first bad row, with its number and its identifying columns, such as cell and layer."""
        if pc.any(invalid).as_py():
            index = pc.index(invalid, True).as_py()
            place = "".join(f", {name} {data[name][index].as_py()}" for name in table.order if name != "key")
            problem = problem.format(data[column.name][index])
            raise RankfallError(f"table {table.name}: column {column.name!r} has {problem}, row {index}{place}{fix}")

    exempt = None  # rows of cells that are not done; they need only the columns of the cell
    if table.cells and len(data):
        exempt = pc.fill_null(pc.not_equal(data["status"], "done"), False)
    for column in table.columns:
        values = data[column.name]
        if not column.nullable:
            invalid = pc.is_null(values)
            if exempt is not None and column not in CELL_COLUMNS:
                invalid = pc.and_not(invalid, exempt)
            refuse(column, invalid, "a null")
        if column.type == "float" and not column.nan:
            refuse(column, pc.fill_null(pc.is_nan(values), False), "a NaN")
        for bound, beyond, side in zip(column.bounds, (pc.less, pc.greater), ("below", "above")):
            if bound is not None:
                invalid = pc.fill_null(
                    beyond(values, data[bound] if isinstance(bound, str) else pa.scalar(bound)), False
                )
                fix = f"\nfix the measure, or the bounds of the column (`columns` of {table.name})"
                refuse(column, invalid, f"{{}}, {side} {bound}", fix)
    identity = list(table.identity)
    if identity:
        groups = data.select(identity).group_by(identity).aggregate([([], "count_all")])
        if len(groups) < len(data):
            index = pc.index(pc.greater(groups["count_all"], 1), True).as_py()
            row = {column: groups[column][index].as_py() for column in identity}
            raise RankfallError(f"table {table.name}: {groups['count_all'][index]} rows with the same key {row}")
