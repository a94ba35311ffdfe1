"""A plan as a shell script: the commands of all stages, in order, for a machine without Snakemake.

Each job is given the digest of what was planned, as Snakemake gives it, and stops where configuration or code have changed since. What
is there is not made again, and what the store has is not computed again.
"""

import shlex
import sys
from pathlib import Path

from rankfall.run.snakemake.jobs import PlannedJob
from rankfall.run.snakemake.run_plan import RunPlan

HEAD = """\
#!/usr/bin/env bash
# All jobs of {name}, in order, one after the other. Written by `rankfall plan --config {typed} --script`.
# Run it in the folder that it was written in, or in a copy of it:
#
#     bash run.sh                          with the Python that wrote it
#     PYTHON=python3 bash run.sh           with another
#
# It stops at the first job that fails. Started again, it goes on: what is there is not made again.
set -euo pipefail
PYTHON=${{PYTHON:-{python}}}
export PYTHONPATH="$PWD/src:$PWD${{PYTHONPATH:+:$PYTHONPATH}}" PYTHONHASHSEED=0
n=0
job() {{
    n=$((n + 1))
    echo "[$n of {jobs}] $1 ${{*:4}}"
    [ -e "$3" ] || "$PYTHON" -m rankfall.cli "$1" --config {config} --results {results} --expect "$2" "${{@:4}}"
}}
trap '"$PYTHON" -m rankfall.cli publish --config {config} --results {results}' EXIT  # also of a run that fails in part
"""
OPTIONS = {  # kind of job -> options of its names
    "data": ("task",),
    "train": ("task", "shard"),
    "measure": ("measure", "task", "shard"),
    "table": ("name",),
    "figure": ("name",),
    "page": (),
}
LAST = {"train": "training-out", "figure": "caption"}  # the option of the file that is written last


def script(run: RunPlan, config: Path) -> str:
    """The text of the script of a plan of this configuration."""
    lines = [command_of(run, job) for job in run.jobs.values()]
    quoted = {name: shlex.quote(str(value)) for name, value in {"config": config, "results": run.results}.items()}
    # A line break would end the comment, and what is behind it would be run.
    said = {
        name: " ".join(text.split()) for name, text in {"name": run.about["name"], "typed": quoted["config"]}.items()
    }
    head = HEAD.format(**said, python=shlex.quote(sys.executable), jobs=len(lines), **quoted)
    return head + "\n".join(lines) + "\n"


def command_of(run: RunPlan, job: PlannedJob) -> str:
    """The line of one job. Which of its files it writes last says whether all are there."""
    files = run.paths(job.files)
    options = {**dict(zip(OPTIONS[job.kind], job.names)), "out": files[0]}
    if job.kind in LAST:
        options[LAST[job.kind]] = files[-1]
    return shlex.join(
        ["job", job.kind, job.digest, files[-1], *(f"--{name}={value}" for name, value in options.items())]
    )
