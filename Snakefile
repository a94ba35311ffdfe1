"""Rankfall: what attention loses with depth. From a configuration to tables, figures and a report.

The plan (which cells there are, which shard each belongs to, what each depends on) follows from configuration and code
alone; every job looks up in the store what is already computed. Rules are wiring: what they run is `rankfall <verb>`.
"""

import os
import sys

from snakemake.utils import min_version

min_version("9.27")

# The plan and all jobs use this checkout's own package, with this interpreter (or the one of a conda environment, which
# is put in front when a job has one), whatever else is installed. Components of your own are found beside this file or
# on PYTHONPATH.
PACKAGES = [os.path.join(workflow.basedir, "src"), workflow.basedir, os.environ.get("PYTHONPATH", "")]
sys.path[:0] = PACKAGES[:2]
os.environ.update(
    PYTHONPATH=os.pathsep.join(filter(None, PACKAGES)),
    PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
)

# One file is the whole configuration: Snakemake would merge a file given by --configfile into this one, and the
# default's architectures would turn up in a preset. `--config key=value` still overrides single values.
if not workflow.overwrite_configfiles:

    configfile: "config.yaml"


from rankfall.schedule.announcing import announce_plan
from rankfall.schedule.wiring import Wiring

WIRING = Wiring(config)
RESULTS = WIRING.results
CONFIG = WIRING.write_config()


onstart:
    # Only the process that runs the jobs, and neither a dry run nor a job.
    announce_plan(WIRING, WIRING.plan, RESULTS)


report: "workflow/report/workflow.rst"


wildcard_constraints:
    task=r"[^/]+",
    shard=r"[0-9a-f]+",
    measure=r"[^/]+",
    table=r"[^/]+",
    figure=r"[^/]+",


localrules:
    all,
    data,
    table,
    figure,


rule all:
    input:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=WIRING.tables),
        expand(f"{RESULTS}/figures/{{figure}}.png", figure=WIRING.figures),


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/report.smk"
