"""Rankfall: what attention loses with depth. From a configuration to tables, figures and a report.

The plan (which cells there are, which shard each belongs to, what each depends on) follows from configuration and code
alone. Every file under results/work has in its name the digest of all that it is made of, so a file that exists is right:
inputs are ancient, and Snakemake asks for nothing but whether files are there. Every job looks up in the store what is
already computed. Rules are wiring: what they run is `rankfall <verb>`.
"""

import os
import sys

from snakemake.utils import min_version, update_config

min_version("9.27")

# The plan and all jobs use this checkout's own package, with this interpreter (or the one of a conda environment, which
# is put in front when a job has one), whatever else is installed; where this file was fetched alone, as a module of another
# workflow, they use the package that is installed. Components of your own are found beside the Snakefile or on PYTHONPATH.
CHECKOUT = str(workflow.current_basedir)
OWN = [os.path.join(CHECKOUT, "src"), os.path.join(CHECKOUT, "engine", "src")]
PACKAGES = [*filter(os.path.isdir, OWN), workflow.basedir]
sys.path[:0] = PACKAGES
BIN = os.path.dirname(sys.executable)

from rankfall.disk import not_ahead
from rankfall.errors import RankfallError
from rankfall.report.style import FORMATS, escape
from rankfall.run.config.types import read
from rankfall.run.forks.client import ADDRESS
from rankfall.run.forks.start import start
from rankfall.run.objects import MARKER
from rankfall.run.snakemake.storage import lock_results
from rankfall.run.snakemake.publish import is_published
from rankfall.run.snakemake.run_plan import PLAN, check_paths, plan_or_load
from rankfall.run.snakemake.storage import fetch_plan, mark_results

# A part of another workflow, which gives it its configuration, and whose own handlers are called alone when a run starts and ends.
MODULE = workflow.modifier.namespace is not None
JOB = not workflow.is_main_process  # of a cluster, which parses this file again
try:
    check_paths([*PACKAGES, BIN])
    # One file is the whole configuration: a file given by --configfile replaces config.yaml, or the default's
    # architectures would turn up in a preset. `--config key=value` still overrides single values. Files are read again
    # here, by the reader of the command line: Snakemake's own takes the last of two keys without a word.
    if not MODULE and not JOB:
        config.clear()
        for file in workflow.overwrite_configfiles or ["config.yaml"]:
            update_config(config, read(file))
        update_config(config, workflow.config_settings.config)
    # With a default storage, files of rules are objects, named as without one. Jobs see copies of them in a folder of Snakemake's: HERE.
    STORED = bool(workflow.storage_settings.default_storage_provider)
    if STORED and JOB:
        RUN, RESULTS = fetch_plan(workflow)
        HERE = RUN.results
    else:
        RUN = plan_or_load(dict(config), JOB)
        RESULTS = str(RUN.results)
        HERE = mark_results(workflow, RUN) if STORED else RUN.results
        if not STORED and not JOB:
            (RUN.results / MARKER).unlink(missing_ok=True)  # the folder itself holds the results
except RankfallError as error:
    sys.exit(f"error: {error}")

os.environ.update(
    PYTHONPATH=os.pathsep.join(filter(None, [*PACKAGES, os.environ.get("PYTHONPATH", "")])),
    PATH=os.pathsep.join([BIN, os.environ.get("PATH", "")]),
    PYTHONHASHSEED="0",  # of all jobs: a set of words has one order, whether or not a component's author knows that it matters
)
config["heading"] = escape(RUN.about["name"])  # as the report's text has it: a name may have any letters

# Jobs of a cluster read what was planned here, whatever config.yaml says by then. Each does its own work, on its own machine, and leaves
# the server of the run to jobs that have no scheduler around them.
if MODULE or JOB:
    os.environ[ADDRESS] = ""
if not JOB:
    os.environ[PLAN] = str(RUN.folder)
    for line in RUN.lines():
        logger.info(line)


onstart:
    begin()


onerror:
    publish_incomplete()


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    digest=r"[0-9a-f]+",
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


# The names that people read are copies, made last. Where they are all there, there is nothing to be done.
if JOB or not is_published(RUN):

    rule all:
        input:
            ancient(FINAL),
        log:
            f"{LOGS}/publish.log",
        conda:
            "envs/environment.yaml"
        params:
            config=RUN.config,
        shell:
            "python -m rankfall.cli publish --config {params.config:q} > {log:q} 2>&1"

else:

    rule all:
        input:
            ancient(FINAL),


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/report.smk"
