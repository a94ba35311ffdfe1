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


def write_lacking_page():
    """The page of what there is: one job that failed takes nothing else with it."""
    failed = failed_for_page(workflow)
    if not failed:
        return
    from rankfall.commands._planned import Planned
    from rankfall.commands.page import write_lacking
    from rankfall.run.screen.words import error_in

    try:
        lacks = write_lacking(
            Planned(WIRING.plan, Path(RESULTS), None), {path: error_in(log) for path, log in failed.items()}
        )
        said = {"lacks": list(lacks)}
        logger.info(f"{WIRING.outputs.page} is made of what there is; it lacks {', '.join(lacks)}")
    except RankfallError as error:
        said = {"no_page": clean(str(error))}
        logger.info(f"no page: {said['no_page']}")
    logger.info(None, extra={"event": "rankfall_page", **said})


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
