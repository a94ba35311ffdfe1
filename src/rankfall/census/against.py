"""Comparison of two censuses, one line per type and column: other inits, defaults or parts in another version of the library.

Times and memory differ in every run and do not count. A number counts as changed if it differs by more than rounding, since another
processor adds in another order.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankfall.errors import RankfallError

UNCOMPARED = frozenset({"seconds", "megabytes", "transformers"})
ROUNDING = 1e-6  # relative
DIGITS = 8
Row = Mapping[str, Any]


def write_census(path: Path, rows: Sequence[Row]) -> None:
    """Write a census as CSV with 8 digits. Null is an empty field."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        names = [name for name in rows[0] if name not in ("seconds", "megabytes")] if rows else []
        table.writerow(names)
        for row in rows:
            table.writerow([write_value(row[name]) for name in names])


def write_value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def read_census(path: Path) -> list[dict[str, str]]:
    """Read the rows of a census as text, from .csv or .parquet."""
    if not path.is_file():
        raise RankfallError(f"--against {path}: there is no such file")
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return [{name: write_value(value) for name, value in row.items()} for row in pq.read_table(path).to_pylist()]
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows and "type" not in rows[0]:
        raise RankfallError(
            f"--against {path} is not a census: it has no column 'type'; `rankfall census --out` writes one"
        )
    return rows


def changes(before: Iterable[Row], after: Iterable[Row], chosen: Sequence[str] = ()) -> list[str]:
    """Return the changes as lines, by type. `chosen`: only these types were measured, so others do not count as gone."""
    old = {str(row["type"]): row for row in before}
    new = {str(row["type"]): row for row in after}
    said = versions(old.values(), new.values())
    for kind in sorted({*old, *new}):
        if chosen and kind not in chosen:
            continue
        if kind not in new:
            said.append(f"{kind}: gone")
        elif kind not in old:
            said.append(f"{kind}: new, {new[kind]['outcome']}")
        else:
            said += [f"{kind}: {line}" for line in find_changed_columns(old[kind], new[kind])]
    return said


def versions(old: Iterable[Row], new: Iterable[Row]) -> list[str]:
    """Return a line if the versions of the library differ."""
    each = [sorted({str(row.get("transformers") or "") for row in rows} - {""}) for rows in (old, new)]
    return [] if each[0] == each[1] else [f"transformers: {', '.join(each[0])} -> {', '.join(each[1])}"]


def find_changed_columns(old: Row, new: Row) -> list[str]:
    """Return a line for each column of one type that both censuses have and that changed."""
    found = []
    for name in old:
        if name in new and name not in UNCOMPARED:
            one, other = as_text(old[name]), as_text(new[name])
            if one != other and not close(one, other):
                found.append(f"{name} {one or 'null'} -> {other or 'null'}{times(one, other)}")
    return found


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else write_value(value)


def close(one: str, other: str) -> bool:
    """Return whether two texts are numbers that are equal up to rounding."""
    try:
        return math.isclose(float(one), float(other), rel_tol=ROUNDING, abs_tol=1e-15)
    except ValueError:
        return False


def times(one: str, other: str) -> str:
    try:
        before, after = float(one), float(other)
    except ValueError:
        return ""
    return f" (x {after / before:.3g})" if before else ""
