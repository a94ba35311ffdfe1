"""Remove unneeded files of the store and work files, logs and plans of earlier runs; without --delete only list them."""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankfall.run.store import Store
    from rankfall.run.store.inventory import Item, Live


AT_ONCE = ("temporary", "announcement")  # kinds of files left by dead processes, removed at any age

ARGUMENTS = """
--config FILE...   config, or all configs, whose results are kept (YAML or JSON) (required)
--results FOLDER   folder of results; by default the one that the configs name
--delete           remove the files
--keep-days X      also keep unneeded results that were written in the last X days; 0 for none (default: 7)
--files            list every file with the reason why it is unneeded
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.run.plan import make_plan
    from rankfall.run.store import Store
    from rankfall.run.store.inventory import DAY, remove

    plans = [make_plan(config) for config in args.config]
    results = args.results or choose_results(plans)
    store = Store(results / "store")
    running, unneeded = find_unneeded(store, plans)
    items = [item for item in unneeded if item.kind in AT_ONCE or item.age >= args.keep_days * DAY]
    young = len(unneeded) - len(items)
    if running:
        print(f"running processes that need this store: {running}; the results that they need are kept")
    if young:
        print(f"{young} unneeded, written in the last {args.keep_days:g} days: kept, see --keep-days")
    print(describe_items(items, args.delete))
    if args.files:
        for item in items:
            print(f"{item.path}: {item.reason}")
    if args.delete:
        _, unneeded_now = find_unneeded(store, plans)  # again, because a run may have started since
        removable = {item.path for item in unneeded_now if item.kind in AT_ONCE or item.age >= args.keep_days * DAY}
        remove([item for item in items if item.path in removable], store)
    elif items:
        print("nothing was removed; add --delete to remove them")
    return 0


def find_unneeded(store: "Store", plans: "Iterable[Any]") -> "tuple[int, list[Item]]":
    """Return the number of running processes that use these results, and the files that neither they nor the plans need."""
    from rankfall.run.store.inventory import find_removable

    needed = find_needed(plans)
    running = add_needed_by_running(store, needed)
    return running, [*find_removable(store, needed), *find_old_files(store, plans, running)]


def find_old_files(store: "Store", plans: "Iterable[Any]", running: int) -> "Iterator[Item]":
    """Yield work files and logs that none of these plans uses, and the written plans of runs. Yield nothing while a process uses these
    results, because its plan may be any of them."""
    from rankfall.run.plan.written import FOLDER
    from rankfall.run.snakemake.jobs import KINDS, PlanJobs
    from rankfall.run.store.inventory import Files, Item

    if running:
        return
    planned = {job.digest for plan in plans for job in PlanJobs(plan).all_jobs}
    for kind, folders in (("work file", ["work"]), ("log", [f"logs/{job_kind}" for job_kind in KINDS])):
        files = Files(store, *folders)
        for path in sorted(files.entries):
            if path.name.partition(".")[0] not in planned:
                yield from files.items(kind, path, "no named configuration asks for it")
    files, folder = Files(store, FOLDER), store.root.parent / FOLDER
    files_of_plan: dict[Path, list[Path]] = {}
    for path in sorted(files.entries):
        files_of_plan.setdefault(folder / path.relative_to(folder).parts[0], []).append(path)
    for plan, paths in files_of_plan.items():
        used = max(files.entries[path][1] for path in paths) if store.objects else plan.lstat().st_mtime
        sizes = {path: files.entries[path][0] for path in paths}
        for path, size in sizes.items() if store.objects else [(plan, sum(sizes.values()))]:
            yield Item("plan", path, size, files.now - used, "the plan of a run that has ended")


def choose_results(plans: "Iterable[Any]") -> Path:
    """Return the folder of results that all configurations name. Raise if they name several."""
    from rankfall.errors import RankfallError

    folders = sorted({plan.config.results for plan in plans})
    if len(folders) > 1:
        raise RankfallError(f"gc: the configs have results in {' and '.join(folders)}: choose one with --results")
    return Path(folders[0])


def find_needed(plans: "Iterable[Any]") -> "Live":
    """Return the keys of cells, data sets and measures that these plans need."""
    from rankfall.run.store.inventory import Live

    needed = Live()
    for plan in plans:
        needed.cells.update(cell.key for cell in plan.cells)
        needed.data.update(cell.data_key for cell in plan.cells)
        for name in plan.measures:
            needed.measures.setdefault(plan.measures[name].component.name, set()).update(list_measure_keys(plan, name))
    return needed


def add_needed_by_running(store: "Store", needed: "Live") -> int:
    """Add the keys that live processes have announced to `needed`, and return the number of these processes."""
    from rankfall.run.plan.cell import digest
    from rankfall.run.store.announced import read_announcements

    announcements, _ = read_announcements(store)
    for process in announcements:
        needed.cells.update(process.cells)
        needed.data.update(process.data)
        for component, keys in process.measures.items():
            rows = {digest(key, cell) for key in keys for cell in (None, *process.cells)}
            needed.measures.setdefault(component, set()).update(rows)
    return len(announcements)


def list_measure_keys(plan: Any, name: str) -> set[str]:
    """Return the keys of a measure's rows in the store."""
    if plan.measures[name].needs != "cells":
        return {plan.measure_key(name)}
    shards = [plan.measured_cells(name, task, shard) for task, shard in plan.shards]
    return {plan.measure_key(name, cell) for cells in shards for cell in cells}


def describe_items(items: "list[Item]", delete: bool) -> str:
    """Return one line per kind of file with number, size and age, and a total."""
    from rich.filesize import decimal

    from rankfall.report.labels import many
    from rankfall.run.store.inventory import DAY

    if not items:
        return "nothing to remove"
    lines = []
    for kind in dict.fromkeys(item.kind for item in items):
        of_kind = [item for item in items if item.kind == kind]
        size, oldest = decimal(sum(item.bytes for item in of_kind)), max(item.age for item in of_kind) / DAY
        lines.append(f"{kind:<11} {len(of_kind):>6} files  {size:>10}  oldest {oldest:.1f} days")
    total = decimal(sum(item.bytes for item in items))
    verb = "removing" if delete else "would remove"
    return "\n".join([*lines, f"{verb} {many(len(items), 'file')}, {total}"])
