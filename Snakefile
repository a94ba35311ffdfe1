"""Rankfall: what attention loses with depth. From a configuration to tables, figures and a report.

The plan (which cells there are, which shard each belongs to, what each depends on) follows from configuration and code
alone; every job looks up in the store what is already computed. Rules are wiring: what they run is `rankfall <verb>`.
"""

import os
import sys
from pathlib import Path

from snakemake.utils import min_version, update_config

min_version("9.27")

# The plan and all jobs use this checkout's own package, with this interpreter (or the one of a conda environment, which
# is put in front when a job has one), whatever else is installed; where this file was fetched alone, as a module of another
# workflow, they use the package that is installed. Components of your own are found beside the Snakefile or on PYTHONPATH.
OWN = os.path.join(str(workflow.current_basedir), "src")
PACKAGES = [OWN] * os.path.isdir(OWN) + [workflow.basedir]
sys.path[:0] = PACKAGES
BIN = os.path.dirname(sys.executable)

from rankfall.run.config.types import read
from rankfall.errors import RankfallError
from rankfall.run.forks.client import ADDRESS
from rankfall.run.forks.start import start
from rankfall.report.rst import escape
from rankfall.run.snakemake.announcing import announce_plan
from rankfall.run.snakemake.estimates import estimates
from rankfall.run.snakemake.internals import Internals, forget_timers
from rankfall.run.snakemake.wiring import Wiring, check_paths
from rankfall.terminal import clean

SNAKEMAKE = Internals(workflow)
# A part of another workflow, which gives it its configuration, and whose own handlers are called alone when a run starts.
MODULE = SNAKEMAKE.is_module
try:
    check_paths([*PACKAGES, BIN])
    # One file is the whole configuration: a file given by --configfile replaces config.yaml, or the default's
    # architectures would turn up in a preset. `--config key=value` still overrides single values. Files are read again
    # here, by the reader of the command line: Snakemake's own takes the last of two keys without a word.
    if not MODULE:
        config.clear()
        for file in SNAKEMAKE.config_files or ["config.yaml"]:
            update_config(config, read(file))
        update_config(config, SNAKEMAKE.config_values)
    given = [] if MODULE else SNAKEMAKE.config_files
    WIRING = Wiring(config, SNAKEMAKE.runs_jobs, Path(given[-1]) if given else None)
except RankfallError as error:
    sys.exit(f"error: {clean(str(error))}")

os.environ.update(
    PYTHONPATH=os.pathsep.join(filter(None, [*PACKAGES, os.environ.get("PYTHONPATH", "")])),
    PATH=os.pathsep.join([BIN, os.environ.get("PATH", "")]),
    PYTHONHASHSEED="0",  # of all jobs: a set of words has one order, whether or not a component's author knows that it matters
)
RESULTS = WIRING.results
config["heading"] = escape(WIRING.name)  # as the report's text has it: a name may have any letters

# A job of a cluster parses this file again, maybe after config.yaml was edited: it is given what was planned here, and reads it
# instead of planning again. It does its own work, on its own machine, and leaves the server of the run to jobs that have no scheduler around them.
if MODULE or not SNAKEMAKE.runs_jobs:
    os.environ[ADDRESS] = ""
else:
    SNAKEMAKE.give_jobs(WIRING.config)


onstart:
    begin()
    SNAKEMAKE.hear_sigterm_beside()
    SNAKEMAKE.wake_once()
    logger.info(
        None,
        extra={
            "event": "rankfall_costs",
            "config": str(WIRING.config),
            "costs": estimates(WIRING.plan, WIRING.states, WIRING.outputs),
        },
    )
    WIRING.forks = start(WIRING.config, WIRING.threads, SNAKEMAKE.local_jobs())


onsuccess:
    forget_timers()


onerror:
    forget_timers()
    write_lacking_page()


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    task=r"[^/]+",
    shard=r"[0-9.-]+",
    measure=r"[^/]+",
    table=r"[^/]+",
    figure=r"[^/]+",


localrules:
    all,
    data,
    table,
    figure,
    page,


rule all:
    input:
        inputs(WIRING.targets),


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/lookup.smk"
include: "workflow/rules/report.smk"
