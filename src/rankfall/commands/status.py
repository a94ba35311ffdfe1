"""Show the grid by state (done, diverged, failed, begun, missing) and why cells failed.

A cell with a checkpoint is begun: a job is training it, or the next job resumes it.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import CellRecord, Store

STATES = ("done", "diverged", "failed", "begun", "missing")
SHOWN = 2  # reasons that --brief prints
NAME = ("task", "architecture", "training", "depth", "seed")  # columns that identify a cell to readers
COLOURS = {"done": "green", "diverged": "yellow", "failed": "red", "begun": "cyan", "missing": "dim"}

ARGUMENTS = """
--config FILE      the benchmark's config, YAML or JSON (default: config.yaml)
--results FOLDER   folder of results; by default the one that the config names
--json             print JSON
--brief            only failed and diverged cells, one line per reason, and failed jobs; exit code 1 if a cell or a job failed
--watch            show the progress of a run, on this machine or another, until it ends; exit code 1 if it failed
--lines N          lines of a failed cell's log to show (default: 5)
"""


def run(args: argparse.Namespace) -> int:
    if args.brief or args.watch:  # without a plan
        from rankfall.run.config.types import parse, read

        results = args.results or Path(parse(read(args.config)).results)
        if args.brief:
            return max(print_brief(results, args.config), print_failed_jobs(results))
        from rankfall.run.screen.watch import watch

        return watch(results, sys.stdout.isatty())
    from rankfall.run.plan import make_plan
    from rankfall.run.store import Store

    plan = make_plan(args.config)
    results = args.results or Path(plan.config.results)
    states = survey(plan, Store(results / "store"), results / "logs", args.lines)
    if args.json:
        print(json.dumps(states, indent=2))
    else:
        show(states)
    return 0


def survey(plan: Any, store: "Store", logs: Path, lines: int) -> dict[str, Any]:
    """Return the states of all cells of a plan as plain data."""
    from rankfall.report.provenance import tail
    from rankfall.run.snakemake.status import flat

    records = store.find_cells([cell.key for cell in plan.cells], {cell.group for cell in plan.cells})
    begun = {key for cells in store.find_checkpoints().values() for key in cells or ()}
    grid: dict[tuple[str, str, str], Counter[str]] = {}
    failed: list[dict[str, Any]] = []
    same_name: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in plan.cells:
        grid.setdefault(cell.labels, Counter())[state_of(cell, records, begun)] += 1
        same_name.setdefault(name_of(cell), []).append(cell)
    for cell in plan.cells:
        state = state_of(cell, records, begun)
        if state in ("failed", "diverged"):
            path = log_of(cell, logs) if state == "failed" else None
            others = [dict(flat(other.content)) for other in same_name[name_of(cell)]]
            fields = dict(zip(NAME, name_of(cell))) | {"key": cell.key, "state": state}
            fields |= {"reason": records[cell.key].record.get("reason", ""), "log": str(path or "")}
            fields |= {"tail": (tail(path, lines) or "").splitlines()}
            failed.append(fields | {"differs": tell_apart(dict(flat(cell.content)), others)})
    rows = [dict(zip(NAME, label)) | {state: counts[state] for state in STATES} for label, counts in grid.items()]
    return {"cells": rows, "total": {state: sum(row[state] for row in rows) for state in STATES}, "not_done": failed}


def name_of(cell: "Cell") -> tuple[Any, ...]:
    """Return the values of NAME of a cell."""
    return (*cell.labels, cell.architecture.depth, cell.seed)


def tell_apart(fields: Mapping[str, Any], others: list[dict[str, Any]]) -> str:
    """Return the fields in which a cell differs from others with the same name, such as `, lr 30.0`, or an empty text."""
    differ = [name for name, value in fields.items() if any(other.get(name) != value for other in others)]
    return "".join(f", {name.rpartition('.')[2].replace('_', ' ')} {fields[name]}" for name in differ)


def state_of(cell: "Cell", records: "dict[str, CellRecord]", begun: set[str]) -> str:
    """Return the state of a cell, one of STATES. A failed cell that has a new checkpoint is begun."""
    record = records.get(cell.key)
    if record is not None and record.status != "failed":
        return record.status
    if cell.key in begun:
        return "begun"
    return "missing" if record is None else "failed"


def log_of(cell: "Cell", logs: Path) -> Path | None:
    """Return the newest log of a job that trained the cell's shard."""
    paths = (logs / "train" / cell.task.name / cell.shard).glob("*.log")
    return max(paths, key=lambda path: path.stat().st_mtime, default=None)


def print_brief(results: Path, config: Path) -> int:
    """Print how many cells failed or diverged, by reason. Return 1 if a cell failed, else 0."""
    import pyarrow.parquet as pq

    table = results / "tables" / "cells.parquet"
    if not table.is_file():
        return 0
    # `read_table` spends a fifth of a second on imports that a single file does not need.
    with pq.ParquetFile(table) as file:
        cells = file.read(columns=[*NAME, "status", "reason"]).to_pylist()
    for line in describe_ended(cells, config):
        print(line)
    return 1 if any(cell["status"] == "failed" for cell in cells) else 0


def print_failed_jobs(results: Path) -> int:
    """Print the failed jobs of the last run, whose cells may be in no table. Return 1 if there is one, else 0."""
    from rankfall.run.screen.ending import list_failed
    from rankfall.run.screen.watch import read_record

    record = read_record(results)
    lines = list(list_failed(record[1])) if record else []
    for line in lines:
        print(line)
    return 1 if lines else 0


def describe_ended(cells: "list[dict[str, Any]]", config: Path) -> Iterator[str]:
    """Yield a line for each of the most frequent states and reasons, and a total. Yield nothing if all cells are done."""
    ended = [cell for cell in cells if cell["status"] != "done"]
    reasons = Counter((cell["status"], cell["reason"]) for cell in ended)
    for (state, reason), count in reasons.most_common(SHOWN):
        first = next(cell for cell in ended if (cell["status"], cell["reason"]) == (state, reason))
        task, architecture, training, depth, seed = (first[name] for name in NAME)
        others = f" and {count - 1} more" if count > 1 else ""
        yield f"==> {state}: {task} / {architecture} / {training}, depth {depth}, seed {seed}{others}: {reason}"
    if ended:
        yield (
            f"==> {len(ended)} of {len(cells)} cells failed or diverged; all of them: rankfall status --config {config}; "
            f"to train failed ones again: rankfall run --retry --config {config}"
        )


def show(states: dict[str, Any]) -> None:
    """Print the survey as a table on a terminal, and in plain columns elsewhere."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from rankfall.run.screen.logs import clean

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    box = {} if console.is_terminal else {"box": None, "pad_edge": False}
    table = Table(*("task", "architecture", "training"), **box)  # type: ignore[arg-type]
    for state in STATES:
        table.add_column(state, justify="right", style=COLOURS[state])
    for row in states["cells"]:
        counts = [str(row[state]) if row[state] else "." for state in STATES]
        table.add_row(*(escape(row[name]) for name in ("task", "architecture", "training")), *counts)
    table.add_section()
    table.add_row("all", "", "", *(str(states["total"][state]) for state in STATES), style="bold")
    console.print(table)
    last = {cell["log"]: cell for cell in states["not_done"]}  # a log of several cells is shown once
    for cell in states["not_done"]:
        name = f"{cell['task']} {cell['architecture']} {cell['training']} depth {cell['depth']} seed {cell['seed']}{cell['differs']}"
        console.print(f"[{COLOURS[cell['state']]}]{cell['state']}[/] {escape(name)}: {escape(cell['reason'])}")
        if not cell["log"] or last[cell["log"]] is not cell:
            continue
        console.print(f"  {escape(cell['log'])}", style="dim")
        for line in cell["tail"]:
            console.print(f"  | {clean(line)}", style="dim", markup=False, soft_wrap=True)
