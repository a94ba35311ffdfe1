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

ARROW = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def conform(name: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Table:
    """Convert rows to a table of the declared schema, checked and sorted. A nullable column may be absent."""
    table = declaration(name, rows)
    declared = {column.name: column for column in table.columns}
    names = rows.column_names if isinstance(rows, pa.Table) else sorted({column for row in rows for column in row})
    valueless = {column for column in names if table.inferred and column not in declared}  # all its values are null
    for unknown in [column for column in names if column not in declared and column not in valueless]:
        hint = suggest(unknown, declared)
        raise RankfallError(f"table {name}: column {unknown!r} is not declared{hint} (`columns` of {name})")
    lenient = table.cells and "status" in names
    arrays = {}
    for column in table.columns:
        if column.name in names:
            arrays[column.name] = _array(name, column.name, ARROW[column.type], rows)
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


def declaration(name: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> Table:
    """Return the declaration of a table. If its own columns are those of its rows, they are named and typed by these rows."""
    table = schema(name)
    if not table.inferred:
        return table
    names = (
        rows.column_names if isinstance(rows, pa.Table) else list(dict.fromkeys(name for row in rows for name in row))
    )
    inferred = [column for column in names if not table.cells or column not in {shared.name for shared in CELL_COLUMNS}]
    types = {column: kind for column in inferred if (kind := _infer_type(name, column, rows))}
    columns = tuple(Column(column, kind, "as the measure gives it", nullable=True) for column, kind in types.items())
    floats = tuple(column for column, kind in types.items() if kind == "float")
    keys = tuple(column for column in types if column not in floats)  # these distinguish rows if they can
    declared = replace(table, own=columns, key=keys)
    return declared if _distinguishes(rows, declared.identity) else replace(declared, key=(*keys, *floats))


def _distinguishes(rows: Sequence[Mapping[str, Any]] | pa.Table, columns: Sequence[str]) -> bool:
    """Return whether no two rows have the same values in these columns."""
    if isinstance(rows, pa.Table):
        present = [column for column in columns if column in rows.column_names]
        return bool(present) and len(rows.select(present).group_by(present).aggregate([])) == len(rows)
    return len({tuple(row.get(column) for column in columns) for row in rows}) == len(rows)


def _infer_type(name: str, column: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> str:
    """Return the type of a column of rows; empty for a column without a value."""
    try:
        kind = rows[column].type if isinstance(rows, pa.Table) else pa.array([row.get(column) for row in rows]).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        line = str(error).splitlines()[0]
        raise RankfallError(f"table {name}: column {column!r} mixes types or holds no plain values: {line}") from None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "int" if pa.types.is_integer(kind) else "float"
    words = {arrow: word for word, arrow in ARROW.items()} | {pa.null(): ""}
    if kind not in words:
        raise RankfallError(
            f"table {name}: column {column!r} has values of type {kind}\n"
            f"fix: give numbers, texts, or true and false, with float(value) or value.item() for a tensor"
        )
    return words[kind]


def _array(name: str, column: str, declared: pa.DataType, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Array:
    """Return a column in its declared type. Integers are converted to floats; any other mismatch is an error."""
    try:
        # Infer the type first: with a declared type, pyarrow would silently convert 1.5 to 1.
        values = rows[column] if isinstance(rows, pa.Table) else pa.array([row.get(column) for row in rows])
        kind = values.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        fits = (
            kind == declared
            or pa.types.is_null(kind)
            or (pa.types.is_large_string(kind) and pa.types.is_string(declared))
            or (number and pa.types.is_floating(declared))
            or (pa.types.is_integer(kind) and pa.types.is_integer(declared))
        )
        if not fits:
            raise pa.ArrowTypeError(f"it has type {kind}")
        return values.cast(declared)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        line = str(error).splitlines()[0]
        raise RankfallError(f"table {name}: column {column!r} has values that are not {declared}: {line}") from None


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
