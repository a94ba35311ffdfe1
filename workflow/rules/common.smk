# What all rules share.

from snakemake.logging import logger
from snakemake.settings.types import RerunTrigger

# What every job is told: `places` and `expect` of its params.
PLANNED = (
    "--config {params.config:q} --results {params.results:q} --package {params.package:q} --expect {params.expect}"
)


def begin():
    """Only in the process that runs the jobs: neither in a dry run nor in a job."""
    try:
        WIRING.begin()
    except RankfallError as error:
        sys.exit(f"error: {clean(str(error))}")
    announce_plan(WIRING, WIRING.plan, RESULTS)


def tell():
    """Have outputs made again that are not what is planned, whatever their times and Snakemake's memory say, and no others."""
    if not workflow.is_main_process or (WIRING.told and WIRING.standing.stale.keys() <= workflow.dag.forcefiles):
        return
    if MODULE and not WIRING.told and not workflow.dryrun:
        begin()
    # What is right follows from what outputs say, not from how they came to be: a table is as right where another rule wrote it,
    # or where its job did not ask for the same files.
    workflow.dag_settings.rerun_triggers = frozenset({RerunTrigger.MTIME})
    WIRING.tell(workflow.dag_settings.forceall, workflow.dag_settings.forcerun)
    workflow.dag.forcefiles.update(WIRING.standing.stale)
    for line in WIRING.standing.lines():
        logger.info(line)
