"""The names that people read, `results/tables/residuals.parquet`, are copies of work files. They are made at the end of every run, also of
one that failed in part; copies, so that whoever edits a table does not edit the work file that other files are made from.
"""

import filecmp
import shutil
from pathlib import Path

from rankfall.disk import atomic, cannot
from rankfall.run.snakemake.run_plan import RunPlan


def find_unpublished(run: RunPlan) -> dict[str, str]:
    """The names under which there is not what the work file has, if there is a work file."""
    return {
        name: file
        for name, file in run.final.items()
        if (run.results / file).is_file() and not _is_copy(run.results / file, run.results / name)
    }


def is_published(run: RunPlan) -> bool:
    """Whether all is there, and under the names that people read too."""
    return all(_is_copy(run.results / file, run.results / name) for name, file in run.final.items())


def publish(run: RunPlan) -> list[str]:
    """Copy what there is and has not been published. Returns the names."""
    found = find_unpublished(run)
    for name, file in found.items():
        copy_file(run.results / file, run.results / name)
    return list(found)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, so that it appears whole."""
    with atomic(target) as copy:
        try:
            with source.open("rb") as content:
                shutil.copyfileobj(content, copy)
        except OSError as error:
            raise cannot("read", source, error) from error


def _is_copy(source: Path, target: Path) -> bool:
    try:
        return filecmp.cmp(source, target, shallow=False)
    except OSError:
        return False
