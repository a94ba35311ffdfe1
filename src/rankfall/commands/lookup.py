"""Write the tables of shards that have nothing to compute, in one process."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.snakemake.lookups import ShardJob


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument(
        "--jobs",
        type=Path,
        metavar="PATH",
        help="JSON list of [task, shard, measure]; by default all jobs without anything to compute",
    )


def run(args: argparse.Namespace) -> int:
    from rankfall.commands._shards import Shards, run_job

    listed = None if args.jobs is None else read_listed_jobs(args.jobs)
    if listed is None:
        own = _planned.make_plan(args)
    else:
        places = {job.place for job in listed}
        own = _planned.make_plan(args, lambda written: written.shards(places), lambda said: said.lookup(listed))
    jobs = listed if listed is not None else find_lookups(own)
    own.check(own.fingerprints.lookup(jobs), f"lookup of {len(jobs)} jobs")
    cells = {cell for job in jobs for cell in own.plan.shard(*job.place)}
    measures = [own.plan.measure(name) for name in sorted({job.measure for job in jobs} - {""})]
    codes = {id(code): code for code in [*(one.code for one in measures), *(cell.code for cell in cells)]}
    keys: dict[str, list[str]] = {}
    for measure in measures:
        keys.setdefault(measure.component.name, []).append(measure.key)

    def look_up(
        shards: Shards,
    ) -> None:
        # Damage shows only when a file is read in full; damaged entries are computed again here.
        shards.store.announce(cells, keys)
        for job in jobs:
            made, paths = own.fingerprints.of(job).record(), [Path(path) for path in own.outputs.of(job)]
            if job.measure:
                shards.measure(job.measure, *job.place, made, *paths)
            else:
                shards.train(*job.place, made, *paths)
        print(f"{len(jobs)} jobs looked up")

    return run_job(own, codes.values(), look_up, insist=False)


def find_lookups(own: _planned.Planned) -> "list[ShardJob]":
    """Return the jobs that a run would look up now."""
    from rankfall.run.snakemake.up_to_date import inspect_outputs

    return sorted(inspect_outputs(own.plan, own.fingerprints, own.outputs).lookups)


def read_listed_jobs(path: Path) -> "list[ShardJob]":
    """Read the jobs that a run lists in a file."""
    from rankfall.errors import RankfallError
    from rankfall.run.snakemake.lookups import ShardJob

    try:
        return [ShardJob(*map(str, job)) for job in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError) as error:
        raise RankfallError(f"--jobs {path}: is not a list of [task, shard, measure]: {error}") from None
