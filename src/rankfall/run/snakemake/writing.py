"""Writing a run's plan, once, for all of its jobs; and reading it again where Snakemake parses the workflow in a job of a cluster."""

from pathlib import Path
from typing import Any

from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell, digest
from rankfall.run.plan.slices import slice_of
from rankfall.run.plan.written import JOBS, DamagedPlan, WrittenPlan, mark_used, seal, write_once
from rankfall.run.snakemake.job_fingerprints import JobFingerprints
from rankfall.run.snakemake.needs import needs
from rankfall.run.snakemake.outputs import Outputs

PLANNING = (
    "rankfall.run.plan.build",
    "rankfall.run.plan.written",
)  # the code whose numbers of combinations are in slices
HERE = Outputs("")  # paths in a written plan begin at the folder of results


def name_of(text: str, fingerprints: JobFingerprints) -> str:
    """What a plan's folder is called: the configuration, the code that has planned, and all that is made of it."""
    made = [(part.path, part.made) for table in fingerprints.tables for part in fingerprints.parts(table, HERE)]
    return digest("plan", text, Sources().fingerprint(PLANNING), made)


def write_plan(config: Path, text: str, fingerprints: JobFingerprints) -> None:
    """Each file appears whole or not at all, the list of jobs last. Where there are right ones already, they stay."""
    plan, written = fingerprints.plan, WrittenPlan(config.parent)
    write_once(config, text.encode())
    mark_used(config.parent)  # before anything else, for whoever cleans now
    for place, cells in plan.shards.items():
        write_once(written.shard_file(*place), seal(slice_of(plan, cells).raw()))
    datasets: dict[str, dict[str, Cell]] = {}
    for cell in plan.cells:
        datasets.setdefault(cell.task.name, {})[cell.data_key] = cell
    for task, cells_of in datasets.items():
        write_once(written.data_file(task), seal(slice_of(plan, list(cells_of.values())).raw()))
    write_once(config.with_name(JOBS), seal(jobs(fingerprints)))


def jobs(fingerprints: JobFingerprints) -> dict[str, Any]:
    """What jobs are told of one another."""
    plan = fingerprints.plan
    parts = [part for table in fingerprints.tables for part in fingerprints.parts(table, HERE)]
    found: dict[str, dict[str, Any]] = {part.path: {"made": part.made} for part in parts}
    for part in parts:
        if part.job is not None:
            found[part.path]["needs"] = needs(plan, part.job)
    for name, measure in plan.measures.items():
        if measure.needs != "cells":
            found[HERE.freely(name)]["tables"] = measure.tables
    return {
        "jobs": found,
        "parts": {
            table: [(part.path, part.fingerprint.what, part.made, part.job) for part in fingerprints.parts(table, HERE)]
            for table in fingerprints.tables
        },
        "sample": slice_of(plan, sample(plan)).series,
    }


def sample(plan: Plan) -> list[Any]:
    """A cell of each kind of code."""
    return list({id(cell.code): cell for cell in reversed(plan.cells)}.values())


def load_written(config: Path, text: str) -> WrittenPlan | None:
    """The plan that was written with this very configuration, if it can be read."""
    found = WrittenPlan.load_beside(config)
    try:
        if found is None or found.config.read_text() != text:
            return None
        found.about  # noqa: B018  # reads it
    except (DamagedPlan, OSError):
        return None
    return found
