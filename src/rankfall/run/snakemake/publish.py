"""Published files such as `results/tables/residuals.parquet`: copies of work files, written at the end of every run, even a failed one.
They are copies, not links, so that an edit of a table does not change the work file that other jobs read.
"""

import filecmp
import shutil
from pathlib import Path

from rankfall.disk import atomic, cannot
from rankfall.run.snakemake.run_plan import RunPlan


def find_unpublished(run: RunPlan) -> dict[str, str]:
    """Return the published files that are missing or differ from an existing work file, with their work files."""
    return {
        name: file
        for name, file in run.final.items()
        if (run.results / file).is_file() and not _is_copy(run.results / file, run.results / name)
    }


def is_published(run: RunPlan) -> bool:
    """Return whether all work files exist and all published files are copies of them."""
    return all(_is_copy(run.results / file, run.results / name) for name, file in run.final.items())


def publish(run: RunPlan) -> list[str]:
    """Copy all work files that are not yet published and return the published names."""
    found = find_unpublished(run)
    for name, file in found.items():
        copy_file(run.results / file, run.results / name)
    return list(found)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file atomically."""
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
