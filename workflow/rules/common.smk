# What all rules share.

from snakemake.logging import logger

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
    failed = SNAKEMAKE.find_failed_for_page()
    if not failed:
        return
    from rankfall.commands._planned import Planned
    from rankfall.commands.page import write_incomplete
    from rankfall.run.screen.words import error_in

    try:
        lacks = write_incomplete(
            Planned(WIRING.plan, Path(RESULTS), None), {path: error_in(log) for path, log in failed.items()}
        )
        said = {"lacks": list(lacks)}
        logger.info(f"{WIRING.outputs.page} is made of what there is; it lacks {', '.join(lacks)}")
    except RankfallError as error:
        said = {"no_page": clean(str(error))}
        logger.info(f"no page: {said['no_page']}")
    logger.info(None, extra={"event": "rankfall_page", **said})


def inputs(function):
    """An input function that first marks what is stale: by then there is a graph of jobs to mark it in."""

    def mark_and_list(wildcards):
        mark_stale()
        return function(wildcards)

    return mark_and_list


def mark_stale():
    """Have outputs made again that are not what is planned, whatever their times and Snakemake's memory say, and no others."""
    first = WIRING.forced is None
    if not SNAKEMAKE.runs_jobs or (not first and SNAKEMAKE.forces(WIRING.states.stale.keys())):
        return
    if MODULE and first and not SNAKEMAKE.is_dry:
        begin()
    SNAKEMAKE.rerun_by_time_only()
    WIRING.set_forced(*SNAKEMAKE.read_forced())
    SNAKEMAKE.force(WIRING.states.stale)
    for line in WIRING.states.lines():
        logger.info(line)
