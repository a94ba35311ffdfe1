"""Two runs side by side, by specification and not by key: the effect of an edit of the code, or of another machine, on the numbers.

A key changes with the code, so rows of two runs are matched by the cell's whole specification and the table's own key.
The tables may have been written by two versions of Rankfall: columns that only one of them has are named, and the others compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.schema import CELL_COLUMNS, schema, table_names

if TYPE_CHECKING:
    import pandas as pd

SPEC = tuple(
    column.name for column in CELL_COLUMNS if not column.provenance and column.name not in ("key", "status", "reason")
)


@dataclass(frozen=True)
class Difference:
    """What one column of a table does between two runs."""

    table: str
    column: str  # "" for rows or a whole table that only one run has
    rows: int  # that differ, or that only one has
    of: int  # rows that both have
    what: str
    largest: float | None = None  # relative difference, of numbers


def compare_runs(one: Path, other: Path, tolerance: float = 0.0) -> dict[str, list[Difference]]:
    """Table -> differences, empty where all common values are equal; relative differences up to `tolerance` are ignored."""
    first, second = _tables(one), _tables(other)
    return {
        name: list(_table_differences(name, first.get(name), second.get(name), tolerance))
        for name in sorted({*first, *second})
    }


def _tables(run: Path) -> dict[str, Path]:
    found = {path.stem: path for path in (run / "tables").glob("*.parquet")}
    if not found:
        raise RankfallError(f"{run} has no tables: name the folder of a run's results, such as `results`")
    return found


def _table_differences(name: str, one: Path | None, other: Path | None, tolerance: float) -> Iterator[Difference]:
    import pandas as pd

    if one is None or other is None:
        yield Difference(name, "", 0, 0, f"only the {'second' if one is None else 'first'} run has this table")
        return
    first, second = pd.read_parquet(one), pd.read_parquet(other)
    for column in [c for c in (*first, *second) if c not in second or c not in first]:
        yield Difference(name, column, 0, 0, f"only the {'first' if column in first else 'second'} run has this column")
    keys = _identity(name, first, second)
    for frame in (first, second):
        if frame.duplicated(
            keys
        ).any():  # as where one specification was trained under two labels that it does not name
            frame["same"] = frame.groupby(keys, dropna=False).cumcount()
    keys += ["same"] * ("same" in first and "same" in second)
    both = first.merge(second, on=keys, how="outer", suffixes=("", " 2"), indicator=True)
    for side, which in (("left_only", "first"), ("right_only", "second")):
        alone = both[both["_merge"] == side]
        if len(alone):
            example = ", ".join(f"{key}={alone.iloc[0][key]}" for key in keys if not pd.isna(alone.iloc[0][key]))
            yield Difference(name, "", len(alone), 0, f"only in the {which} run, such as {example}")
    shared = both[both["_merge"] == "both"]
    for column in first:
        if column in keys or column not in second or column in _provenance(name):
            continue
        yield from _column_differences(name, column, shared, keys, tolerance)


def _column_differences(
    name: str, column: str, shared: pd.DataFrame, keys: list[str], tolerance: float
) -> Iterator[Difference]:
    import pandas as pd

    a, b = shared[column], shared[f"{column} 2"]
    apart = ~((a == b) | (a.isna() & b.isna()))
    largest = None
    if pd.api.types.is_float_dtype(a) and pd.api.types.is_float_dtype(b):
        size = pd.concat([a.abs(), b.abs()], axis=1).max(axis=1)
        relative = ((a - b).abs() / size.where(size > 0, 1.0)).where(a.notna() & b.notna(), float("inf"))
        apart &= relative > tolerance
        largest = float(relative[apart].max()) if apart.any() else None
    if not apart.any():
        return
    row = shared[apart].iloc[0] if largest is None else shared.loc[relative[apart].idxmax()]
    where = ", ".join(f"{key}={row[key]}" for key in keys if not pd.isna(row[key]) and shared[key].nunique() > 1)
    what = f"{row[column]} and {row[f'{column} 2']} at {where}"
    yield Difference(name, column, int(apart.sum()), len(shared), what, largest)


def _identity(name: str, first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """The columns that identify a row in both runs."""
    declared = schema(name) if name in table_names() else None
    own = declared.key if declared else ()
    if "key" in first:
        own = (*SPEC, *own)
    return [column for column in own if column in first and column in second]


def _provenance(name: str) -> set[str]:
    """Columns that may differ between two equal results, and keys, which name the code."""
    declared = schema(name) if name in table_names() else None
    return {"key", *(column.name for column in (declared.columns if declared else ()) if column.provenance)}


def as_lines(found: dict[str, list[Difference]]) -> Iterator[str]:
    """For a terminal: one line per table, and one for each difference."""
    for table, differences in found.items():
        yield f"{table}: {'equal' if not differences else f'{len(differences)} differences'}"
        for one in differences:
            size = "" if one.largest is None else f", by up to {one.largest:.2g} relative"
            rows = f"{one.rows} of {one.of} rows differ{size}: " if one.of else f"{one.rows} rows: " if one.rows else ""
            yield f"  {one.column + ': ' if one.column else ''}{rows}{one.what}"


def as_records(found: dict[str, list[Difference]]) -> list[dict[str, Any]]:
    """For programs."""
    return [vars(one) for differences in found.values() for one in differences]
