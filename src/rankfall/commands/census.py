"""Measure every model type of the transformers library at initialisation, and compare with an earlier census."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from rankfall.census.against import changes, read_census
    from rankfall.census.outcomes import count_outcomes, refusals

    earlier = read_census(args.against) if args.against else None
    for path in filter(None, (args.out, args.layers)):
        check_suffix(path)
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


def check_suffix(path: Path) -> None:
    """Raise an error unless a table can be written to a file of this suffix."""
    from rankfall.errors import RankfallError

    if path.suffix not in (".csv", ".parquet"):
        raise RankfallError(f"{path}: write .csv or .parquet")


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


def plan_census(args: argparse.Namespace) -> "Plan":
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
    from rankfall.census.against import write_census

    write_census(path, conform(name, rows).to_pylist())
