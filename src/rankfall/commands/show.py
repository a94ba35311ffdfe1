"""Show the provenance of a cell: design, code, machine, log, and a configuration that computes it again."""

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.project import run_command

if TYPE_CHECKING:
    from rankfall.run.store import CellRecord, Store

NAMED = 5  # cells that the error of an ambiguous prefix lists

ARGUMENTS = """
KEY                the cell's key, as the column `key` of tables has it, or its start
--results FOLDER   folder of results (default: results)
--snippet          print only the configuration that computes the cell again
--json             print JSON
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.report.provenance import provenance, snippet, tail
    from rankfall.run.store import Store

    cell = find(args.key, Store(args.results / "store", only_reads=True))
    if args.snippet:
        print(snippet(cell.record), end="")
        return 0
    facts = provenance(cell.key, cell.record)
    log = log_of(args.results, facts["task"], cell.key)
    facts |= {"snippet": snippet(cell.record), "log": tail(log), "file": str(cell.stack), "log_file": str(log or "")}
    facts["rows"] = rows_of(sorted((args.results / "tables").glob("*.parquet")), cell.key)
    print(json.dumps(facts, indent=2) if args.json else "\n".join(as_lines(facts)))
    return 0


def find(start: str, store: "Store") -> "CellRecord":
    """Return the cell with this key, or the only cell whose key starts with `start`."""
    from rankfall.errors import RankfallError
    from rankfall.report.labels import few

    if not store.root.is_dir():
        raise RankfallError(f"{store.root} is missing: pass --results FOLDER, the folder of a run's results")
    keys = {record.key for record in store.records()}
    matches = [start] if start in keys else sorted(key for key in keys if key.startswith(start))
    if not matches:
        problem = f"key {start!r}: no cell of {store.root} ({len(keys)} cells) has a key that starts with it"
        raise RankfallError(f"{problem}\n  fix: name the run that has it, --results FOLDER")
    if len(matches) > 1:
        found = ", ".join(few(matches, NAMED))
        raise RankfallError(
            f"key {start!r}: {len(matches)} cells have keys that start with it ({found})\n  fix: give more characters"
        )
    return store.find_cells(matches)[matches[0]]


def log_of(results: Path, task: str, key: str) -> Path | None:
    """Return the newest log of a job that trained the cell, found by the keys in the tables of the shards."""
    import pyarrow.parquet as pq

    from rankfall.report.tables import open_table

    work, suffix = results / "work", ".cells.parquet"
    tables = sorted((work / "train" / task).glob(f"*/*{suffix}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for table in tables:
        log = results / "logs" / table.relative_to(work).with_name(table.name.removesuffix(suffix) + ".log")
        if log.is_file() and key in open_table(table, partial(pq.read_table, columns=["key"]))["key"].to_pylist():
            return log
    return None


def rows_of(tables: list[Path], key: str) -> dict[str, int]:
    """Return table -> number of rows of this cell, for tables that have any."""
    import pyarrow.parquet as pq

    with_key = [path for path in tables if "key" in pq.read_schema(path).names]
    counts = {path.stem: len(pq.read_table(path, columns=["key"], filters=[("key", "==", key)])) for path in with_key}
    return {name: count for name, count in counts.items() if count}


def as_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the provenance as lines for a terminal."""
    yield f"{facts['key']}  {facts['task']} / {facts['architecture']} / {facts['training']}, seed {facts['seed']}"
    yield f"status    {facts['status']}{': ' + facts['reason'] if facts['reason'] else ''}"
    for split, metrics in (facts["final"] or {}).items():
        yield f"{split:<9} " + ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())
    steps, seconds = _describe_number(facts, "steps", "steps"), _describe_number(facts, "seconds", "s", ".3g")
    yield f"cost      {steps}, {seconds}, {_describe_number(facts, 'megabytes', 'MB')}"
    versions = ", ".join(f"{name} {version}" for name, version in (facts["versions"] or {}).items())
    threads = _describe_number(facts, "threads", "threads")
    yield f"machine   {facts['host']}, {facts['device']}, {facts['dtype']}, {threads}; {versions}"
    yield f"processor {facts['processor'] or 'not recorded'}"
    yield f"time      {facts['time']}"
    yield f"commit    {facts['commit'] or 'not recorded: the code was in no git repository'}"
    yield f"stack     {facts['file']}"
    yield f"data      {facts['data_key']}"
    rows = ", ".join(f"{name} {count}" for name, count in facts["rows"].items())
    yield f"rows      {rows or 'in no table: the cell is from an earlier run, or no table is written yet'}"
    if facts["installed"]:
        yield "installed " + ", ".join(f"{name} {version}" for name, version in facts["installed"].items())
    yield f"code      {len(facts['code'])} files on which its numbers depend, with digests of their syntax:"
    yield from (f"  {digest}  {file}" for file, digest in sorted(facts["code"].items()))
    again = run_command(Path("again.yaml"))
    yield f"config    computes it again (`rankfall show KEY --snippet > again.yaml`, `{again}`):"
    yield from (f"  {line}" for line in facts["snippet"].splitlines())
    yield f"log       {facts['log_file'] or 'none'}"
    yield from (f"  | {line}" for line in (facts["log"] or "").splitlines())


def _describe_number(facts: dict[str, Any], name: str, unit: str, form: str = "") -> str:
    """Write a number with its unit, or that it was not recorded."""
    return f"{unit} not recorded" if facts[name] is None else f"{facts[name]:{form}} {unit}"
