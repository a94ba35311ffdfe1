"""Two runs of one configuration, one for each engine of training steps: are their numbers the same but for what seeds change anyway?

    python -m benchmarks.engines results/auto results/plain [results/control]

Say `compute: {engine: auto}` in the one and `{engine: plain}` in the other. Rounding grows in training, so that single networks differ;
what a figure shows are means over seeds, beside how far seeds lie apart. For each table and architecture a line tells of the column whose
means differ most, in deviations over seeds: of cells that have the same specification but for the seed. It ends with 1 where a difference
is larger than `--bound` deviations, a row is in one run alone, or a number is missing in one.

How much of a difference is rounding that has grown is what a third run tells: the plain engine again, rounded otherwise, as another
processor would (`ATEN_CPU_CAPABILITY=avx2 make run`, with other `results`, of all cells or some). Beside each difference then stands that
of the two plain runs in the same column, and the bound is `--times` of it where that is larger.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]

if TYPE_CHECKING:
    import pandas as pd

BOUND, TIMES = 3.0, 3.0


Column = tuple[str, str, str]  # table, architecture, column


@dataclass(frozen=True)
class Apart:
    """One column of a table, for one architecture."""

    table: str
    architecture: str
    column: str
    rows: int
    single: float  # the largest difference of a row
    means: float  # the largest difference of means over seeds
    deviation: float  # over seeds in the first run, root mean square; NaN where every specification has one seed
    missing: int  # rows of which one run alone has a number

    @property
    def place(self) -> Column:
        return self.table, self.architecture, self.column

    @property
    def ratio(self) -> float:
        """Of the means' difference to the deviation: infinite where there is no deviation and yet a difference."""
        if not self.means:
            return 0.0
        return self.means / self.deviation if self.deviation > 0 else float("inf")


def main() -> int:
    sys.path.insert(0, str(ROOT / "src"))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engines", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("one", type=Path, metavar="RUN", help="a folder of results")
    parser.add_argument("other", type=Path, metavar="RUN", help="another one, of the other engine")
    parser.add_argument("control", type=Path, metavar="CONTROL", nargs="?", help="the plain engine, rounded otherwise")
    parser.add_argument(
        "--times", type=float, default=TIMES, help=f"as often the difference of the plain runs (default {TIMES:g})"
    )
    parser.add_argument(
        "--bound", type=float, default=BOUND, help=f"deviations over seeds that means may differ by (default {BOUND:g})"
    )
    args = parser.parse_args()
    found, alone = compared(args.one, args.other)
    rounded: dict[Column, Apart] = {}
    if args.control:
        rounded = {one.place: one for one in compared(args.other, args.control)[0]}
    limits = {one.place: limit(one, rounded.get(one.place), args.bound, args.times) for one in found}
    for line in alone:
        print(line)
    for worst in largest(found, limits):
        print(told(worst, limits[worst.place], rounded.get(worst.place)))
    return 1 if alone or any(beyond(one, limits[one.place]) for one in found) else 0


def limit(one: Apart, rounded: Apart | None, bound: float, times: float) -> float:
    """What means may differ by: where no deviation is known, only as much more as two plain runs do."""
    deviation = one.deviation if one.deviation > 0 else 0.0
    return max(bound * deviation, times * rounded.means if rounded else 0.0)


def compared(one: Path, other: Path) -> tuple[list[Apart], list[str]]:
    """Every column of every table of cells, and what only one run has."""
    import pandas as pd

    from rankfall.report.schema import schema, table_names

    found: list[Apart] = []
    alone: list[str] = []
    names = [sorted(path.stem for path in (run / "tables").glob("*.parquet")) for run in (one, other)]
    alone += [f"{name}: only one of the runs has this table" for name in sorted({*names[0]} ^ {*names[1]})]
    for name in sorted({*names[0]} & {*names[1]} & {*table_names()}):
        if not schema(name).cells:
            continue
        first, second = (pd.read_parquet(run / "tables" / f"{name}.parquet") for run in (one, other))
        keys = identity(name, first, second)
        for data in (first, second):  # a specification may have several rows, as where it is trained under two labels
            data["same"] = data.groupby(keys, dropna=False).cumcount()
        keys.append("same")
        both = first.merge(second, on=keys, how="outer", suffixes=("", " 2"), indicator=True)
        if count := int((both["_merge"] != "both").sum()):
            alone.append(f"{name}: {count} rows are in one run alone")
        found += of_table(name, both[both["_merge"] == "both"], keys)
    return found, alone


def identity(name: str, first: "pd.DataFrame", second: "pd.DataFrame") -> list[str]:
    """The columns that tell rows apart, but for keys, which name the engine; without those that tell nothing."""
    from rankfall.report.runs import SPEC
    from rankfall.report.schema import schema

    own = [column for column in (*SPEC, *schema(name).key) if column in first and column in second]
    labels = {"task", "architecture", "training", "seed"}
    varied = lambda column: len({*first[column].unique(), *second[column].unique()}) > 1  # noqa: E731
    return [column for column in own if column in labels or varied(column)]


def of_table(name: str, both: "pd.DataFrame", keys: list[str]) -> Iterator[Apart]:
    from rankfall.report.schema import schema

    columns = [c.name for c in schema(name).columns if c.type == "float" and not c.provenance and c.name not in keys]
    places = [column for column in keys if column != "seed"]
    for column in columns:
        if column not in both or f"{column} 2" not in both:
            continue
        values = both[[*keys, column, f"{column} 2"]]
        values = values[values[column].notna() | values[f"{column} 2"].notna()]
        for architecture, part in values.groupby("architecture", sort=False):
            grouped = part.groupby(places, dropna=False)
            means = grouped[[column, f"{column} 2"]].mean()
            deviations = grouped[column].std()
            yield Apart(
                name,
                str(architecture),
                column,
                len(part),
                float((part[column] - part[f"{column} 2"]).abs().max()),
                float((means[column] - means[f"{column} 2"]).abs().max()),
                float((deviations**2).mean() ** 0.5),
                int((part[column].isna() ^ part[f"{column} 2"].isna()).sum()),
            )


def beyond(one: Apart, limit: float) -> bool:
    return one.missing > 0 or one.means > limit


def largest(found: list[Apart], limits: dict[Column, float]) -> Iterator[Apart]:
    """Of each table and architecture the column that differs most, as its limit has it."""

    def size(one: Apart) -> tuple[bool, float]:
        allowed = limits[one.place]
        return one.missing > 0, one.means / allowed if allowed else one.ratio

    best: dict[tuple[str, str], Apart] = {}
    for one in found:
        place = one.table, one.architecture
        if place not in best or size(one) > size(best[place]):
            best[place] = one
    yield from best.values()


def told(one: Apart, limit: float, rounded: Apart | None = None) -> str:
    if not one.single and not one.missing:
        return f"{one.table:20} {one.architecture:24} equal ({one.rows} rows)"
    size = f"means {one.means:.3g} apart, {one.ratio:.2f} of the deviation {one.deviation:.3g} over seeds"
    wrong = f"; {one.missing} rows have a number in one run alone" if one.missing else ""
    beside = f"; two plain runs: {rounded.ratio:.2f}, {rounded.single:.3g}, {rounded.missing} rows" if rounded else ""
    mark = "  BEYOND" if beyond(one, limit) else ""
    return (
        f"{one.table:20} {one.architecture:24} {one.column}: {size}; single rows {one.single:.3g}{wrong}{beside}{mark}"
    )


if __name__ == "__main__":
    sys.exit(main())
