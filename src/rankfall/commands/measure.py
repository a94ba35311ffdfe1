"""Measure the networks of one shard: only what the store does not have."""

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument("--measure", required=True, help="the measure's name in the config")
    parser.add_argument("--task", help="the task's name in the config; not for a measure that needs no cells")
    parser.add_argument("--shard", help="the shard, as `rankfall plan` names it")
    parser.add_argument(
        "--tables", type=Path, help="folder of tables, for a measure of tables; default: results' tables/"
    )
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(args: argparse.Namespace) -> int:
    from rankfall.jobs.engine import INTERRUPTED, Interrupted, Settings, stop_signals
    from rankfall.jobs.measuring import MeasuringWork, measured, measured_freely, measured_tables
    from rankfall.plan import make_plan
    from rankfall.report import tables
    from rankfall.store import Store
    from rankfall.train.device import prepare

    plan = make_plan(args.config)
    compute = plan.config.compute
    device = prepare(compute.device, compute.threads, insist=False)
    results = args.results or Path(plan.config.results)
    settings = Settings(device, compute.stack, compute.checkpoint_seconds)
    job = MeasuringWork(plan, plan.measure(args.measure), Store(results / "store"), settings)
    about = tables.provenance(device=str(device))
    if job.measure.needs == "nothing":
        rows = measured_freely(job)
    elif job.measure.needs == "tables":
        rows = measured_tables(job, args.tables or results / "tables")
    else:
        cells = plan.measured_cells(args.measure, args.task, args.shard)
        about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(device))
        try:
            with stop_signals() as stopped:
                rows = measured(cells, job, stopped)
        except Interrupted as reason:
            print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
            return INTERRUPTED
    tables.write(job.measure.table, rows, args.out, about)
    return 0
