"""A plan as a shell script: the commands of all stages, in order, for a machine without Snakemake.

Each job is given the digest of what was planned, as Snakemake gives it, and stops where configuration or code have changed since. What
the store has is not computed again.
"""

import shlex
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from rankfall.run.plan.build import Plan
from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints
from rankfall.run.snakemake.outputs import Outputs

HEAD = """\
#!/usr/bin/env bash
# All jobs of {name}, in order, one after the other. Written by `rankfall plan --config {typed} --script`.
# Run it in the folder that it was written in, or in a copy of it:
#
#     bash run.sh                          with the Python that wrote it
#     PYTHON=python3 bash run.sh           with another
#
# It stops at the first job that fails. Started again, it goes on: what is in the store is not computed again.
set -euo pipefail
PYTHON=${{PYTHON:-{python}}}
export PYTHONPATH="$PWD/src:$PWD${{PYTHONPATH:+:$PYTHONPATH}}" PYTHONHASHSEED=0
n=0
job() {{
    n=$((n + 1))
    echo "[$n of {jobs}] $1 ${{*:3}}"
    "$PYTHON" -m rankfall.cli "$1" --config {config} --results {results} --expect "$2" "${{@:3}}"
}}
"""


def script(plan: Plan, config: Path, results: Path) -> str:
    """The text of the script, of a plan of this configuration."""
    lines = list(commands(plan, Outputs.under(results)))
    quoted = {name: shlex.quote(str(value)) for name, value in {"config": config, "results": results}.items()}
    # A line break would end the comment, and what is behind it would be run.
    said = {
        name: " ".join(text.split()) for name, text in {"name": plan.config.name, "typed": quoted["config"]}.items()
    }
    head = HEAD.format(**said, python=shlex.quote(sys.executable), jobs=len(lines), **quoted)
    return head + "\n".join(lines) + "\n"


def commands(plan: Plan, outputs: Outputs) -> Iterator[str]:
    """One line a job; each after those that make what it needs."""
    said = JobFingerprints(plan)
    for task in sorted({task for task, _ in plan.shards}):
        yield _job("data", said.data(task), outputs.data(task), task=task)
    for place, cells in plan.shards.items():
        task, shard = place
        more = {"training-out": outputs.training(*place)}
        yield _job("train", said.train(*place), outputs.cells(*place), task=task, shard=shard, **more)
        for name in sorted(plan.measures):
            if any(cell.key in plan.selected.get(name, ()) for cell in cells) and plan.measures[name].needs == "cells":
                made = said.measure(name, *place)
                yield _job("measure", made, outputs.measure_shard(name, *place), measure=name, task=task, shard=shard)
    # A measure of tables comes after the measures that fill those tables.
    free = {name: measure for name, measure in sorted(plan.measures.items()) if measure.needs != "cells"}
    filled = {table: [name for name in plan.tables.get(table, ()) if name in free] for table in said.tables}
    order = TopologicalSorter({name: [one for table in free[name].tables for one in filled[table]] for name in free})
    left = dict.fromkeys(said.tables)
    for name in [*order.static_order(), ""]:
        reads = free[name].tables if name else [*left]
        for table in [table for table in reads if table in left]:
            del left[table]
            yield _job("table", said.table(table), outputs.table(table), name=table)
        if name:
            yield _job("measure", said.freely(name), outputs.freely(name), measure=name)
    for figure in sorted(plan.figures):
        caption = {"caption": outputs.caption(figure)}
        yield _job("figure", said.figure(figure), outputs.picture(figure), name=figure, **caption)
    if plan.config.page:
        yield _job("page", said.page(), outputs.page)


def _job(verb: str, fingerprint: JobFingerprint, out: str, **options: str) -> str:
    words = [f"--{name}={value}" for name, value in options.items()]
    return shlex.join(["job", verb, fingerprint.digest, *words, f"--out={out}"])
