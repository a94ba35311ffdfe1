# What all rules share.

import functools
from pathlib import Path

from snakemake.logging import logger

import rankfall
from rankfall.run.objects import find_objects

# What every job is told. As paths: they are of no result's identity, and Snakemake compares params of plain types alone.
PLACES = {"config": RUN.config, "results": HERE, "package": Path(rankfall.__file__).parent}
PLANNED = (
    "--config {params.config:q} --results {params.results:q} --package {params.package:q} --expect {wildcards.digest}"
)
WORK, LOGS = f"{RESULTS}/work", f"{RESULTS}/logs"
FINAL = [f"{RESULTS}/{file}" for file in RUN.final.values()]
MOST = 3  # times what the first attempt may use; a job that was preempted often is no larger for that


def inputs(pattern):
    """Return the files that a job reads. A file that is there is right, whatever its date. A job whose own files are there waits for no file
    that is not: Snakemake runs a job whose input another job is about to make, also if that input is ancient.
    """

    def list_inputs(wildcards):
        write_plan()
        job = RUN.find(pattern, wildcards)
        done = all(map(is_there, job.files))
        return [ancient(f"{RESULTS}/{file}") for file in job.inputs if not done or is_there(file)]

    return list_inputs


def is_there(file):
    return file in stored_names() if STORED else os.path.isfile(f"{RESULTS}/{file}")


@functools.cache
def stored_names():
    """Return the work files in the object store when the run begins. A job needs all its inputs, and does not ask."""
    return frozenset() if JOB else frozenset(find_objects(RUN.results).names("work"))


@functools.cache
def write_plan():
    """What jobs read; neither in a job nor in a dry run, which is known as such by the time that jobs are asked for their inputs."""
    if not JOB and not workflow.dryrun:
        RUN.write()
        if STORED:
            for folder in (RUN.folder, RUN.results / "store" / "announced"):
                find_objects(RUN.results).put_new(folder)
        not_ahead([RUN.results / "work"])  # or Snakemake fails a job whose input is newer than its output


def priority(pattern):
    return lambda wildcards: RUN.needs(pattern, wildcards).priority


def minutes(pattern):
    return lambda wildcards, attempt=1: RUN.needs(pattern, wildcards).minutes * min(attempt, MOST)


def megabytes(pattern):
    """Return the memory of a job. Each attempt adds the memory of one worker: a job of many may ask for most of a node already."""

    def needed(wildcards, attempt=1):
        needs = RUN.needs(pattern, wildcards)
        return round(needs.megabytes * (1 + (min(attempt, MOST) - 1) / needs.workers))

    return needed


def processors(pattern):
    return lambda wildcards: RUN.needs(pattern, wildcards).workers * RUN.about["threads"]


def gpus(rule, pattern):
    """Return the GPUs that the configuration needs, unless the profile says by `gres` how it requests them: SLURM refuses both."""
    each = RUN.about["workers_per_gpu"]
    if not each or "gres" in workflow.resource_settings.overwrite_resources.get(rule, {}):
        return {}
    return {"gpu": lambda wildcards: -(-RUN.needs(pattern, wildcards).workers // each)}


def begin():
    """Only in the process that runs the jobs: neither in a dry run nor in a job."""
    global FORKS  # or its server ends here
    try:
        lock_results(RUN.results)
    except RankfallError as error:
        sys.exit(f"error: {clean(str(error))}")
    logger.info(None, extra={"event": "rankfall_began"})
    FORKS = start(RUN.config, RUN.about["threads"], RUN.kinds_here(workflow.local_exec))


def publish_incomplete():
    """Copy what there is; and write the page of it: one job that failed takes nothing else with it."""
    from rankfall.commands.page import write_incomplete
    from rankfall.run.snakemake.publish import publish

    publish(RUN)
    try:
        lacks = write_incomplete(RUN)
        said = {"lacks": list(lacks)}
        if lacks:
            logger.info(f"{RESULTS}/report/index.html is made of what there is; it lacks {', '.join(lacks)}")
    except RankfallError as error:
        said = {"no_page": clean(str(error))}
        logger.info(f"no page: {said['no_page']}")
    logger.info(None, extra={"event": "rankfall_page", **said})
