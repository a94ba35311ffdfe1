"""Measure the networks of one shard that the store does not have yet; `measure model NAME` measures one Hugging Face model."""

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
        "--tables", type=Path, help="folder of tables, for a measure of tables; default: results' tables/"
    )
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(args: argparse.Namespace) -> int:
    from rankfall.commands._shards import Shards, run_job

    own = _plan_shard(args)
    measure, place = own.plan.measure(args.measure), (args.task, args.shard)
    if measure.needs != "cells":
        return run_job(own, [measure.code], lambda shards: measure_freely(args, shards), insist=False)
    cells = own.plan.measured_cells(args.measure, *place)

    def measure_shard(shards: Shards) -> None:
        made = own.check(own.fingerprints.measure(args.measure, *place), f"measure {' '.join((args.measure, *place))}")
        shards.store.announce(cells, {measure.component.name: [measure.key]})
        shards.measure(args.measure, *place, made, args.out)

    return run_job(own, [measure.code, *(cell.code for cell in cells)], measure_shard, insist=False)


def _plan_shard(args: argparse.Namespace) -> _planned.Planned:
    """Plan the cells of a shard, or no cells if the measure needs none."""
    from rankfall.run.plan.slices import Slice

    if args.task is None or args.shard is None:
        return _planned.make_plan(args, lambda written: Slice([]), lambda said: said.freely(args.measure))
    place = args.task, args.shard
    return _planned.make_plan(
        args, lambda written: written.shard(*place), lambda said: said.measure(args.measure, *place)
    )


def measure_freely(args: argparse.Namespace, shards: "Shards") -> None:
    """Run a measure that needs no cells and write its table."""
    from rankfall.report import tables
    from rankfall.run.jobs.engine import stop_signals
    from rankfall.run.jobs.measuring import MeasuringWork, measure_tables, measure_without_cells
    from rankfall.run.jobs.processor import processor

    own = shards.own
    measure = own.plan.measure(args.measure)
    made = own.check(own.fingerprints.freely(args.measure), f"measure {args.measure}")
    folder = args.tables or own.results / "tables"
    if args.tables is None or not measure.tables:
        own.check_tables(measure.tables)
    else:
        made = {}  # no record: the tables may differ from those of the plan
    with stop_signals() as stopped:
        job = MeasuringWork(own.plan, measure, shards.store, shards.settings, stopped)
        rows = measure_tables(job, folder) if measure.needs == "tables" else measure_without_cells(job)
    about = tables.provenance(device=str(shards.settings.device)) | {"processor": processor()}
    tables.write(measure.table, rows, args.out, about | made)
