"""Measure every model type of the transformers library at initialisation, and compare with an earlier census."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError

if TYPE_CHECKING:
    import pandas as pd

    from rankfall.run.plan import Plan

ARGUMENTS = """
--types TYPE...    model types; by default all
--against FILE     an earlier census, .csv or .parquet, to compare with
--out FILE         write the table, as .csv or .parquet
--layers FILE      write the table by layer, as .csv or .parquet
--depth N          largest number of layers (default: 6)
--tokens N         tokens of a text (default: 16)
--seed N           seed of weights and inputs (default: 0)
--seconds N        processor time for a type (default: 60)
--gigabytes N      memory for a type (default: 3)
--results FOLDER   folder of results (default: results/census)
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.census.outcomes import count_outcomes, refusals

    earlier = read_census(args.against) if args.against else None
    for path in filter(None, (args.out, args.layers)):
        if path.suffix not in (".csv", ".parquet"):
            raise RankfallError(f"{path}: write .csv or .parquet")
    layers, rows = measure_types(args)
    print(count_outcomes(rows))
    for line in refusals(rows):
        print(line)
    for path, name, table in ((args.out, "census", rows), (args.layers, "census_layers", layers)):
        if path is not None:
            write(path, name, table)
            print(f"wrote {path}")
    if earlier is not None:
        lines = changes(earlier, rows, chosen=args.types)
        print("\n".join(lines) if lines else "nothing changed")
    return 0


def measure_types(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows by layer and the rows by type. Types that the store does not have are measured."""
    from rankfall.census.folded import fold
    from rankfall.overview.census_columns import SHARED
    from rankfall.report.schema import schema
    from rankfall.run.guards import guard_job
    from rankfall.run.jobs.engine import Settings, stop_signals
    from rankfall.run.jobs.measuring import MeasuringWork, measure_without_cells
    from rankfall.run.store import Store
    from rankfall.train.device import prepare

    plan = plan_census(args)
    measure = plan.measures["census_layers"]
    settings = Settings(prepare("cpu", 1), plan.config.compute.stack, plan.config.compute.checkpoint_seconds)
    with guard_job([measure.code], args.results), stop_signals() as stopped:
        rows = measure_without_cells(MeasuringWork(plan, measure, Store(args.results / "store"), settings, stopped))
    full = [{column.name: row.get(column.name) for column in schema("census_layers").columns} for row in rows]
    return full, fold(full, SHARED)


def plan_census(args: argparse.Namespace) -> Plan:
    """Plan a configuration whose only measure is the census."""
    from rankfall.run.plan import make_plan

    shared = ("types", "tokens", "seed", "seconds", "gigabytes")
    options = {"layers": args.depth} | {name: getattr(args, name) for name in shared}
    return make_plan(
        {
            "name": "census",
            "results": str(args.results),
            "measures": {"census_layers": options},
            "compute": {"checkpoint_seconds": 20},
        }
    )


def write(path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write a table as Parquet or CSV, by the suffix of the file."""
    from rankfall.report import tables
    from rankfall.report.conform import conform

    if path.suffix == ".parquet":
        tables.write(name, rows, path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    as_text(conform(name, rows).to_pylist()).to_csv(path, index=False, lineterminator="\n")


COST = ["seconds", "megabytes"]  # differ in every run and do not count as changes
ROUNDING = 1e-6  # relative difference up to which numbers are equal: another processor adds in another order
FORMAT = "%.8g"


def as_text(rows: Sequence[Any] | pd.DataFrame) -> pd.DataFrame:
    """Return a census as text with 8 digits, one row per type. Null is an empty field."""
    import pandas as pd

    def write_value(value: Any) -> str:
        if pd.isna(value):
            return ""
        return FORMAT % value if isinstance(value, float) else str(value)

    return pd.DataFrame(rows, dtype=object).drop(columns=COST, errors="ignore").map(write_value)


def read_census(path: Path) -> pd.DataFrame:
    """Read the rows of a census as text, from .csv or .parquet."""
    import pandas as pd

    if not path.is_file():
        raise RankfallError(f"--against {path}: there is no such file")
    if path.suffix == ".parquet":
        return as_text(pd.read_parquet(path, dtype_backend="pyarrow"))
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "type" not in table:
        raise RankfallError(
            f"--against {path} is not a census: it has no column 'type'; `rankfall census --out` writes one"
        )
    return table


def changes(before: pd.DataFrame, after: Sequence[Any], chosen: Sequence[str] = ()) -> list[str]:
    """Return the changes as lines, by type. `chosen`: only these types were measured, so others do not count as gone."""
    old, new = (frame.set_index("type").to_dict("index") for frame in (before, as_text(after)))
    versions = [", ".join(sorted({row.get("transformers", "") for row in rows.values()} - {""})) for rows in (old, new)]
    lines = [f"transformers: {versions[0]} -> {versions[1]}"] if versions[0] != versions[1] else []
    for kind in sorted({*old, *new}):
        if chosen and kind not in chosen:
            continue
        if kind not in new:
            lines.append(f"{kind}: gone")
        elif kind not in old:
            lines.append(f"{kind}: new, {new[kind]['outcome']}")
        else:
            lines += [f"{kind}: {line}" for line in find_changed_columns(old[kind], new[kind])]
    return lines


def find_changed_columns(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return a line for each column of one type that both censuses have and that changed."""
    lines = []
    for name, value in old.items():
        if name not in new or name in (*COST, "transformers"):
            continue
        other = new[name]
        try:
            before, after = float(value), float(other)
            same = math.isclose(before, after, rel_tol=ROUNDING, abs_tol=1e-15)
            times = f" (x {after / before:.3g})" if before else ""
        except ValueError:
            same, times = value == other, ""
        if not same:
            lines.append(f"{name} {value or 'null'} -> {other or 'null'}{times}")
    return lines
