"""Comparison of two runs, or of two tables, by specification: the effect of an edit of the code, or of another machine, on the numbers.

Keys change with the code, so rows of two runs are matched by the cell's whole specification and the table's key columns. The tables may be
from two versions of Rankfall: columns that only one of them has are listed, and the others are compared.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall import components
from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError
from rankfall.report.labels import few, many
from rankfall.report.schema import CELL_COLUMNS, Table, schema
from rankfall.report.tables import about_of

if TYPE_CHECKING:
    import pyarrow as pa

SPEC = tuple(
    column.name for column in CELL_COLUMNS if not column.provenance and column.name not in ("key", "status", "reason")
)
LABELS = ("task", "architecture", "training")
CELLS = "specification of its cells"
ENTRIES = 6  # entries of the grid that a line lists


@dataclass(frozen=True)
class Difference:
    """The difference of a column of a table between two runs."""

    table: str
    column: str  # "" for rows or a whole table that only one run has
    rows: int  # rows that differ, or that only one run has
    of: int  # rows that both runs have
    what: str
    largest: float | None = None  # largest relative difference of numbers
    # task / architecture / training -> "differing rows of all its rows"
    whose: dict[str, str] = field(default_factory=dict)


def compare_runs(first: Path, second: Path, tolerance: float = 0.0) -> dict[str, list[Difference]]:
    """Return table -> differences, empty if all common values are equal; relative differences up to `tolerance` are ignored."""
    import pandas as pd

    runs = [{path.stem: path for path in (run / "tables").glob("*.parquet")} for run in (first, second)]
    for run, tables in zip((first, second), runs):
        if not tables:
            raise RankfallError(f"{run} has no tables: name the folder of a run's results, such as `results`")
    differences = {}
    for name in sorted({*runs[0], *runs[1]}):
        if all(name in tables for tables in runs):
            left, right = (_specify(pd.read_parquet(tables[name]), tables.get("cells")) for tables in runs)
            differences[name] = list(compare_frames(name, left, right, tolerance))
        else:
            which = "first" if name in runs[0] else "second"
            differences[name] = [Difference(name, "", 0, 0, f"only the {which} run has this table")]
    return differences


def differences(first: "pa.Table", second: "pa.Table", tolerance: float = 0.0) -> list[str]:
    """Return the differences of two tables, one line each, except for provenance columns and metadata. NaN equals NaN; relative differences
    up to `tolerance` are ignored."""
    name, other = about_of(first).get("table", ""), about_of(second).get("table", "")
    if name != other:
        return [f"one is the table {name!r}, the other {other!r}"]
    unequal = list(compare_frames(name, first.to_pandas(), second.to_pandas(), tolerance))
    return [line.strip() for line in as_lines({name: unequal})][1:]


def compare_frames(name: str, first: DataFrame, second: DataFrame, tolerance: float) -> Iterator[Difference]:
    """Yield the differences of a table between two runs."""
    import pandas as pd

    for column in [c for c in (*first, *second) if c not in second or c not in first]:
        yield Difference(name, column, 0, 0, f"only the {'first' if column in first else 'second'} run has this column")
    if first.empty and second.empty:
        return
    declared = schema(name) if name in components.names("table") else Table(name, "", ())
    identity = (*(SPEC if "key" in first else ()), *declared.key, CELLS)
    keys = [column for column in identity if column in first and column in second]
    # Equal results may differ in these. Keys of cells depend on the code.
    may_differ = {"key", *(column.name for column in declared.columns if column.provenance)}
    # A specification can have several rows, for example if it was trained under two labels. Its rows are then numbered in both runs, even
    # if only one run has several, because a merge would pair each of these with the single row of the other run.
    if any(frame.duplicated(keys).any() for frame in (first, second)):
        for frame in (first, second):
            frame["same"] = frame.groupby(keys, dropna=False).cumcount()
        keys.append("same")
    merged = first.merge(second, on=keys, how="outer", suffixes=("", " 2"), indicator=True)
    for side, which in (("left_only", "first"), ("right_only", "second")):
        alone = merged[merged["_merge"] == side]
        if len(alone):
            example = ", ".join(f"{key}={alone.iloc[0][key]}" for key in keys if not pd.isna(alone.iloc[0][key]))
            yield Difference(name, "", len(alone), 0, f"only in the {which} run, such as {example}")
    shared = merged[merged["_merge"] == "both"]
    for column in first:
        if column in second and column not in (*keys, *may_differ):
            yield from _column_differences(name, column, shared, keys, tolerance)


def _specify(table: DataFrame, cells: Path | None) -> DataFrame:
    """Add the specification of the cells of each row, except seeds, to a table of architectures in settings, because the same names may
    mean another task or training in another run."""
    import pandas as pd

    if "setting" not in table or "key" in table or "architecture" not in table or cells is None:
        return table
    specifications = pd.read_parquet(cells)
    by = [column for column in SPEC if column in table and column in specifications and column != "seed"]
    others = [column for column in SPEC if column in specifications and column not in (*by, "seed")]
    if not by or not others:
        return table
    words = specifications[others].astype("string").fillna("").agg(", ".join, axis=1)
    specifications = (
        specifications.assign(**{CELLS: words})
        .groupby(by, dropna=False)[CELLS]
        .agg(lambda texts: "; ".join(sorted(set(texts))))
    )
    return table.merge(specifications.reset_index(), on=by, how="left")


def _column_differences(
    name: str, column: str, shared: DataFrame, keys: list[str], tolerance: float
) -> Iterator[Difference]:
    """Yield the difference of a column over the rows that both runs have, if there is one."""
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
    yield Difference(name, column, int(apart.sum()), len(shared), what, largest, _whose(shared, apart))


def _whose(shared: DataFrame, apart: Series) -> dict[str, str]:
    """Return entry of the grid -> number of differing rows, in descending order."""
    labels = [shared[label].astype(str) for label in LABELS if label in shared]
    if not labels:
        return {}
    entries = labels[0].str.cat(labels[1:], sep=" / ")
    counts = apart.groupby(entries, sort=False).agg(["sum", "size"]).sort_values("sum", ascending=False, kind="stable")
    return {name: f"{row['sum']} of {row['size']}" for name, row in counts.iterrows() if row["sum"]}


Codes = Mapping[str, Mapping[str, str]]  # specification of a cell -> source file -> digest


def code_differences(first: Codes, second: Codes) -> dict[str, int]:
    """Return source file -> number of common cells for which its code differs, or for which only one of the two runs uses it."""
    counts: Counter[str] = Counter()
    for spec in first.keys() & second.keys():
        counts.update({file for file, _ in first[spec].items() ^ second[spec].items()})
    return dict(sorted(counts.items()))


def as_lines(differences: dict[str, list[Difference]], code: Mapping[str, int] | None = None) -> Iterator[str]:
    """Yield lines for a terminal: differing code, a line per table, and for each difference a line and another with entries of the grid."""
    for file, cells in (code or {}).items():
        yield f"code: {file} differs, for {many(cells, 'cell')}"
    for table, unequal in differences.items():
        yield f"{table}: {'equal' if not unequal else many(len(unequal), 'difference')}"
        for difference in unequal:
            size = "" if difference.largest is None else f", by up to {difference.largest:.2g} relative"
            rows = f"{difference.rows} rows: " if difference.rows else ""
            if difference.of:
                rows = f"{difference.rows} of {difference.of} rows differ{size}: "
            yield f"  {difference.column + ': ' if difference.column else ''}{rows}{difference.what}"
            if difference.whose:
                entries = [f"{entry} ({count})" for entry, count in difference.whose.items()]
                yield f"    rows of {', '.join(few(entries, ENTRIES))}"
