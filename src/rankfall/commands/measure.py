"""Measure the networks of one shard, except what the store has already."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.plan.cell import Cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--measure", required=True, help="the measure's name in the config")
    parser.add_argument("--task", help="the task's name in the config; not for a measure that needs no cells")
    parser.add_argument("--shard", help="the shard, as `rankfall plan` names it")
    parser.add_argument(
        "--tables", type=Path, help="folder of tables, for a measure of tables; default: results' tables/"
    )
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(args: argparse.Namespace) -> int:
    from rankfall.code.unchanged import proved

    own = _planned.planned(args)
    measure = own.plan.measure(args.measure)
    cells = own.plan.measured_cells(args.measure, args.task, args.shard) if measure.needs == "cells" else []
    with proved([measure.code, *(cell.code for cell in cells)], own.plan.texts):
        return measure_shard(args, own, cells)


def measure_shard(args: argparse.Namespace, own: _planned.Planned, cells: "list[Cell]") -> int:
    from rankfall.commands._shards import Shards
    from rankfall.jobs.engine import INTERRUPTED, Interrupted, Settings
    from rankfall.jobs.measuring import MeasuringWork, measured_freely, measured_tables
    from rankfall.report import tables
    from rankfall.store import Store
    from rankfall.train.device import prepare

    plan, statements = own.plan, own.statements
    compute = plan.config.compute
    device = prepare(compute.device, compute.threads, insist=False)
    settings = Settings(device, compute.stack, compute.checkpoint_seconds)
    job = MeasuringWork(plan, plan.measure(args.measure), Store(own.results / "store"), settings)
    if job.measure.needs == "cells":
        made = own.check(
            statements.measure(args.measure, args.task, args.shard), f"measure {args.measure} {args.task} {args.shard}"
        )
        job.store.announce(cells, {job.measure.component.name: [job.measure.key]})
        try:
            Shards(own, job.store, settings).measure(args.measure, args.task, args.shard, made, args.out)
        except Interrupted as reason:
            print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
            return INTERRUPTED
        return 0
    made = own.check(statements.freely(args.measure), f"measure {args.measure}")
    folder = args.tables or own.results / "tables"
    if args.tables is None or not job.measure.tables:
        own.check_tables(job.measure.tables)
    else:
        made = {}  # whether or not the tables are those of the plan
    rows = measured_tables(job, folder) if job.measure.needs == "tables" else measured_freely(job)
    tables.write(job.measure.table, rows, args.out, tables.provenance(device=str(device)) | made)
    return 0
