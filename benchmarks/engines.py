"""Compare the tables of two runs of one configuration, one for each engine: do they differ by more than rounding?

    python -m benchmarks.engines results/auto results/plain [results/control]

The runs have `compute: {engine: auto}` and `{engine: plain}`. Rounding grows in training, so single networks differ. Means over seeds are
compared instead, in standard deviations over seeds. The control is a third run by the plain engine, rounded as on another processor
(`ATEN_CPU_CAPABILITY=avx2 make run`, with other `results`): it shows how far rounding alone takes two runs apart.

For each table and architecture a line shows the column whose means differ most. The command ends with 1 if means differ by more than
`--bound` deviations and by more than `--times` the difference between the plain runs, or if a row or a number is in one run alone.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rankfall.report.runs import SPEC
from rankfall.report.schema import schema, table_names

LABELS = {"task", "architecture", "training", "seed"}
Key = tuple[str, str, str]  # table, architecture, column


@dataclass(frozen=True)
class Difference:
    """The differences of one column of a table for one architecture."""

    rows: int
    single: float  # the largest of a row
    means: float  # the largest of a mean over seeds
    deviation: float  # over seeds in the first run, root mean square; 0 if every specification has one seed
    missing: int  # rows that have a number in one run alone

    def excess(self, limit: float) -> float:
        """Return the difference of means over its limit, or infinity where a number is missing."""
        return math.inf if self.missing else self.means / limit if limit else math.inf if self.means else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("first", type=Path, metavar="RUN", help="a folder of results")
    parser.add_argument("second", type=Path, metavar="RUN", help="one of the other engine")
    parser.add_argument("control", type=Path, metavar="CONTROL", nargs="?", help="one rounded otherwise")
    parser.add_argument("--times", type=float, default=3.0, help="limit in differences of the plain runs (default 3)")
    parser.add_argument("--bound", type=float, default=3.0, help="limit in standard deviations over seeds (default 3)")
    args = parser.parse_args()
    differences, unmatched = compare_runs(args.first, args.second)
    plain = compare_runs(args.second, args.control)[0] if args.control else {}
    limits = {
        key: max(args.bound * difference.deviation, args.times * plain[key].means if key in plain else 0.0)
        for key, difference in differences.items()
    }
    excess = {key: difference.excess(limits[key]) for key, difference in differences.items()}
    worst: dict[tuple[str, str], Key] = {}
    for key in sorted(differences, key=lambda key: (excess[key], differences[key].single, differences[key].rows)):
        worst[key[:2]] = key
    for line in unmatched:
        print(line)
    for table, architecture in sorted(worst):
        key = worst[table, architecture]
        text = describe(key[2], differences[key], plain.get(key))
        print(f"{table:20} {architecture:24} {text}{'  BEYOND' if excess[key] > 1 else ''}")
    return 1 if unmatched or any(value > 1 for value in excess.values()) else 0


def describe(column: str, difference: Difference, control: Difference | None) -> str:
    """Write how far two runs are apart in a column."""
    if not difference.single and not difference.missing:
        return f"equal ({difference.rows} rows)"
    text = f"{column}: means {difference.means:.3g} apart, deviation over seeds {difference.deviation:.3g}"
    text += f"; single rows {difference.single:.3g}, {difference.missing} with a number in one run alone"
    if control:
        text += f"; plain runs: means {control.means:.3g}, single rows {control.single:.3g}, {control.missing} rows"
    return text


def compare_runs(first: Path, second: Path) -> tuple[dict[Key, Difference], list[str]]:
    """Return the differences of every table of cells, and lines about what is in one run alone."""
    names = [{path.stem for path in (run / "tables").glob("*.parquet")} for run in (first, second)]
    unmatched = [f"{name}: only one of the runs has this table" for name in sorted(names[0] ^ names[1])]
    differences: dict[Key, Difference] = {}
    for name in sorted(names[0] & names[1] & {*table_names()}):
        if not schema(name).cells:
            continue
        tables = [pd.read_parquet(run / "tables" / f"{name}.parquet") for run in (first, second)]
        keys = identifying_columns(name, *tables)
        for table in tables:  # a specification has several rows if it is trained under two labels
            table["repetition"] = table.groupby(keys, dropna=False).cumcount()
        keys.append("repetition")
        merged = tables[0].merge(tables[1], on=keys, how="outer", suffixes=("", " 2"), indicator=True)
        if count := int((merged["_merge"] != "both").sum()):
            unmatched.append(f"{name}: {count} rows are in one run alone")
        differences |= compare_columns(name, merged[merged["_merge"] == "both"], keys)
    return differences, unmatched


def identifying_columns(name: str, first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Return the columns that distinguish rows. Keys of cells do not count, since they name the engine."""
    columns = [column for column in (*SPEC, *schema(name).key) if column in first and column in second]
    values = {column: {*first[column].unique(), *second[column].unique()} for column in columns}
    return [column for column in columns if column in LABELS or len(values[column]) > 1]


def compare_columns(name: str, merged: pd.DataFrame, keys: list[str]) -> Iterator[tuple[Key, Difference]]:
    """Yield the differences of each column of a table, by architecture."""
    specification = [column for column in keys if column != "seed"]
    for column in schema(name).columns:
        pair = [column.name, f"{column.name} 2"]
        if column.type != "float" or column.provenance or column.name in keys or not {*pair} <= {*merged}:
            continue
        for architecture, rows in merged[merged[pair].notna().any(axis=1)].groupby("architecture", sort=False):
            groups = rows.groupby(specification, dropna=False)
            means, deviation = groups[pair].mean(), float((groups[pair[0]].std() ** 2).mean() ** 0.5)
            yield (
                (name, str(architecture), column.name),
                Difference(
                    len(rows),
                    float((rows[pair[0]] - rows[pair[1]]).abs().max()),
                    float((means[pair[0]] - means[pair[1]]).abs().max()),
                    deviation if deviation > 0 else 0.0,
                    int((rows[pair[0]].isna() ^ rows[pair[1]].isna()).sum()),
                ),
            )


if __name__ == "__main__":
    sys.exit(main())
