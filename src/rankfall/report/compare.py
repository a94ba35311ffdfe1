"""Comparison of two tables without their provenance columns (time, machine, stack)."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankfall.report.conform import declaration
from rankfall.report.schema import Table
from rankfall.report.tables import about_of


def equal(one: pa.Table, other: pa.Table, tolerance: float = 0.0) -> bool:
    """Return whether two tables have the same rows, except for provenance columns and metadata. NaN equals NaN."""
    return not differences(one, other, tolerance)


def differences(one: pa.Table, other: pa.Table, tolerance: float = 0.0, most: int = 10) -> list[str]:
    """Return the differences of two tables, one line each; `tolerance` is relative, and absolute below 1."""
    name, second = about_of(one).get("table", ""), about_of(other).get("table", "")
    if name != second:
        return [f"one is the table {name!r}, the other {second!r}"]
    table = declaration(name, one)
    if one.column_names != other.column_names:
        return [f"columns differ: {sorted(set(one.column_names) ^ set(other.column_names))}"]
    found = _rows_apart(table, one, other, most)
    if found:
        return found
    for column in table.columns:
        if column.provenance:
            continue
        if pc.all(pc.fill_null(pc.equal(one[column.name], other[column.name]), False)).as_py():
            continue
        pairs = zip(one[column.name].to_pylist(), other[column.name].to_pylist())
        apart = [(row, a, b) for row, (a, b) in enumerate(pairs) if not _same(a, b, tolerance)]
        if apart:
            row, a, b = apart[0]
            where = ", ".join(f"{key}={one[key][row].as_py()}" for key in table.identity)
            found.append(f"{column.name}: {len(apart)} of {len(one)} rows differ, first {a!r} and {b!r} at {where}")
    return found[:most]


def _rows_apart(table: Table, one: pa.Table, other: pa.Table, most: int) -> list[str]:
    """Return lines for rows that only one of two tables has, by the table's key."""
    if not table.identity:
        return [] if len(one) == len(other) else [f"{len(one)} rows and {len(other)} rows"]
    keys = [list(zip(*(data[key].to_pylist() for key in table.identity))) for data in (one, other)]
    if keys[0] == keys[1]:
        return []
    first, second = set(keys[0]), set(keys[1])
    found = [f"only in the first: {dict(zip(table.identity, key))}" for key in keys[0] if key not in second]
    found += [f"only in the second: {dict(zip(table.identity, key))}" for key in keys[1] if key not in first]
    rest = [f"... and {len(found) - most} more rows that only one has"] * (len(found) > most)
    return found[:most] + rest or ["the rows are in another order"]


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))
    return a == b
