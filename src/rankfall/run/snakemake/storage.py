"""The folder of results of a run: one run at a time uses it, and it may be in an object store.

`lock_results` locks the folder against runs from any checkout or machine. Snakemake removes the outputs of a job before it runs, so two
concurrent runs would remove each other's files. Snakemake's lock is in the checkout; this one is in the results.

If the profile has a default storage, jobs see only an object store (`run/objects.py`).
"""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any, TextIO

from rankfall.disk import cannot
from rankfall.errors import RankfallError
from rankfall.run.objects import Objects
from rankfall.run.plan.written import CONFIG, FOLDER, JOBS
from rankfall.run.snakemake.run_plan import RunPlan

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # errors of file systems without locks
_held: list[TextIO] = []  # open files of locks; the system releases a lock when this process ends, even if it is killed


def lock_results(results: Path) -> None:
    """Lock a folder of results until this process ends. Raise if another process holds the lock."""
    path = results / "logs" / "run.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = f"wait for it; `rankfall status --watch --results {results}` shows it"
            raise RankfallError(f"results: another run works on {results}: {hint}") from None
        _held.append(file)
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise cannot("lock", path, error) from error


def mark_results(workflow: Any, run: RunPlan) -> Path:
    """Mark the folder of results, and the folder in which Snakemake keeps copies of the objects, and return the latter."""
    if os.path.isabs(run.results):
        raise RankfallError(
            f"results: {run.results} is absolute, and names of objects begin at the prefix of the object store\n"
            "fix: name a folder below this one"
        )
    if not any(Path(file).name == CONFIG for file in workflow.overwrite_configfiles):
        raise RankfallError("jobs of an object store read a written plan\nfix: start the run with `rankfall run`")
    copies = objects_of(workflow, str(run.results))
    for folder in (run.results, copies.folder):
        Objects(folder, copies.url, copies.endpoint_url).mark()
    return copies.folder


def fetch_plan(workflow: Any) -> tuple[RunPlan, str]:
    """Return the plan of a run, in a job that sees only the object store, and the folder of results by its name in rules."""
    planned = Path(os.path.relpath(workflow.overwrite_configfiles[0])).parent
    results = str(planned.parents[1])
    objects = objects_of(workflow, results)
    objects.mark()
    folder = objects.folder / FOLDER / planned.name
    for name in (CONFIG, JOBS):
        objects.fetch(folder / name)
    run = RunPlan.load(folder)
    if run is None:
        raise RankfallError(f"{objects.url}/{FOLDER}/{planned.name} has no plan that this version can read; run again")
    return run, results


def objects_of(workflow: Any, results: str) -> Objects:
    """Return the objects of the results, in the folder in which Snakemake keeps copies of them."""
    storage = workflow.storage_settings
    settings = workflow.storage_provider_settings.get(storage.default_storage_provider)
    endpoint = getattr(settings.get_settings(None), "endpoint_url", None) if settings else None
    return Objects(
        Path(str(workflow.inputfile(results))), f"{storage.default_storage_prefix.rstrip('/')}/{results}", endpoint
    )
