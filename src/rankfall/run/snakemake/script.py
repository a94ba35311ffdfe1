"""Write a plan as a shell script: the commands of all jobs, in order, for a machine without Snakemake.

As with Snakemake, each job gets its planned digest and stops if configuration or code changed after planning. The script writes no existing
file again, and jobs compute no cell in the store again.
"""

import shlex
import sys
from pathlib import Path

from rankfall.run.snakemake.jobs import PlannedJob
from rankfall.run.snakemake.run_plan import RunPlan

HEAD = """\
#!/usr/bin/env bash
# All jobs of {name}, one after another. Written by `rankfall plan --config {typed} --script`.
# Run it in the folder in which it was written, or in a copy of that folder:
#
#     bash run.sh                          with the Python that wrote it
#     PYTHON=python3 bash run.sh           with another
#
# It stops at the first job that fails. If you start it again, it skips the jobs whose files exist.
set -euo pipefail
PYTHON=${{PYTHON:-{python}}}
export PYTHONPATH="$PWD/src:$PWD/engine/src:$PWD${{PYTHONPATH:+:$PYTHONPATH}}" PYTHONHASHSEED=0
n=0
job() {{
    n=$((n + 1))
    echo "[$n of {jobs}] $1 ${{*:4}}"
    [ -e "$3" ] || "$PYTHON" -m rankfall.cli "$1" --config {config} --results {results} --expect "$2" "${{@:4}}"
}}
trap '"$PYTHON" -m rankfall.cli publish --config {config} --results {results}' EXIT  # even if a job fails
"""
OPTIONS = {  # kind of job -> options that take its names
    "data": ("task",),
    "train": ("task", "shard"),
    "measure": ("measure", "task", "shard"),
    "table": ("name",),
    "figure": ("name",),
    "page": (),
}
LAST = {"train": "training-out", "figure": "caption"}  # option of the file that is written last


def script(run: RunPlan, config: Path) -> str:
    """Return the text of the script that runs a plan."""
    lines = [command_of(run, job) for job in run.jobs.values()]
    quoted = {name: shlex.quote(str(value)) for name, value in {"config": config, "results": run.results}.items()}
    # A line break would end the comment, and the shell would run the remaining text.
    comment = {"name": run.about["name"], "typed": quoted["config"]}
    comment = {name: " ".join(text.split()) for name, text in comment.items()}
    head = HEAD.format(**comment, python=shlex.quote(sys.executable), jobs=len(lines), **quoted)
    return head + "\n".join(lines) + "\n"


def command_of(run: RunPlan, job: PlannedJob) -> str:
    """Return the line of a job. The file that the job writes last shows whether all its files exist."""
    files = run.paths(job.files)
    options = {**dict(zip(OPTIONS[job.kind], job.names)), "out": files[0]}
    if job.kind in LAST:
        options[LAST[job.kind]] = files[-1]
    return shlex.join(
        ["job", job.kind, job.digest, files[-1], *(f"--{name}={value}" for name, value in options.items())]
    )
