"""Measure the networks of one shard that are not in the store; `measure model NAME` measures one Hugging Face model."""

import argparse
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.jobs.engine import Settings
    from rankfall.run.store import Store

ARGUMENTS = (
    _planned.ARGUMENTS
    + """
--measure NAME     the measure's name in the config (required)
--task NAME        the task's name in the config; not for a measure that needs no cells
--shard NAME       the shard, as `rankfall plan` names it
--tables FOLDER    folder of tables, for a measure of tables; default: those of the plan
--out FILE         table to write (required)
--worker           measure the cells that the job sends, and write no table
"""
)


def run(args: argparse.Namespace) -> int:
    from rankfall.run.plan.written import shard_file

    place = () if args.task is None or args.shard is None else (args.task, args.shard)
    planned = _planned.plan_job(args, "measure", args.measure, *place, cells=[shard_file(*place)] if place else [])
    measure = planned.plan.measures[args.measure]
    cells = planned.plan.measured_cells(args.measure, args.task, args.shard) if measure.needs == "cells" else []
    codes = [measure.code, *(cell.code for cell in cells)]
    return _planned.run_job(
        planned, codes, lambda store, settings: measure_job(args, planned, store, settings), insist=False
    )


def measure_job(args: argparse.Namespace, planned: _planned.Planned, store: "Store", settings: "Settings") -> None:
    """Measure the cells of a shard, tables, or what needs neither, and write the table of rows."""
    from rankfall.report import tables
    from rankfall.run.jobs.engine import stop_signals
    from rankfall.run.jobs.measuring import (
        MeasuringWork,
        measure_as_worker,
        measure_cells,
        measure_tables,
        measure_without_cells,
    )
    from rankfall.run.jobs.processor import processor_of

    measure = planned.plan.measures[args.measure]
    metadata = tables.provenance(device=str(settings.device)) | {"processor": processor_of(settings.device)}
    with stop_signals(args.worker) as stopped:
        job = MeasuringWork(planned.plan, measure, store, settings, stopped)
        if measure.needs == "cells":
            cells = planned.plan.measured_cells(args.measure, args.task, args.shard)
            if args.worker:
                measure_as_worker(cells, job)
                return
            store.announce(cells, {measure.component.name: [measure.key]})
            rows = measure_cells(cells, job)
            metadata = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(settings.device))
        elif measure.needs == "tables":
            rows = measure_tables(job, {name: planned.table_file(name, args.tables) for name in measure.tables})
        else:
            rows = measure_without_cells(job)
    tables.write(measure.table, rows, args.out, metadata)
