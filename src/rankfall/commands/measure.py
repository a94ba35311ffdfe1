"""Measure the networks of one shard that are not in the store; `measure model NAME` measures one Hugging Face model."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.commands._shards import Shards


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--measure", required=True, help="the measure's name in the config")
    parser.add_argument("--task", help="the task's name in the config; not for a measure that needs no cells")
    parser.add_argument("--shard", help="the shard, as `rankfall plan` names it")
    parser.add_argument(
        "--tables", type=Path, help="folder of tables, for a measure of tables; default: those of the plan"
    )
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(args: argparse.Namespace) -> int:
    from rankfall.commands._shards import Shards, run_job

    own = plan_measure(args)
    measure, place = own.plan.measure(args.measure), (args.task, args.shard)
    if measure.needs != "cells":
        return run_job(own, [measure.code], lambda shards: measure_freely(args, shards), insist=False)
    cells = own.plan.measured_cells(args.measure, *place)

    def measure_shard(shards: Shards) -> None:
        shards.store.announce(cells, {measure.component.name: [measure.key]})
        shards.measure(args.measure, *place, args.out)

    return run_job(own, [measure.code, *(cell.code for cell in cells)], measure_shard, insist=False)


def plan_measure(args: argparse.Namespace) -> _planned.Planned:
    """Plan the measure of a shard, or a measure that needs no cells."""
    from rankfall.run.plan.slices import Slice

    if args.task is None or args.shard is None:
        return _planned.plan_job(args, "measure", args.measure, read=lambda written: Slice([]))
    place = args.task, args.shard
    return _planned.plan_job(args, "measure", args.measure, *place, read=lambda written: written.shard(*place))


def measure_freely(args: argparse.Namespace, shards: "Shards") -> None:
    """Run a measure that needs no cells and write its table."""
    from rankfall.report import tables
    from rankfall.run.jobs.engine import stop_signals
    from rankfall.run.jobs.measuring import MeasuringWork, measure_tables, measure_without_cells
    from rankfall.run.jobs.processor import processor

    own = shards.own
    measure = own.plan.measure(args.measure)
    files = {name: own.table_file(name, args.tables) for name in measure.tables}
    with stop_signals() as stopped:
        job = MeasuringWork(own.plan, measure, shards.store, shards.settings, stopped)
        rows = measure_tables(job, files) if measure.needs == "tables" else measure_without_cells(job)
    about = tables.provenance(device=str(shards.settings.device)) | {"processor": processor()}
    tables.write(measure.table, rows, args.out, about)
