"""Show the provenance of a cell: design, code, machine, log, and a configuration that computes it again."""

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from rankfall.report.provenance import provenance, snippet
    from rankfall.run.store import Store

    cell = find(args.key, Store(args.results / "store", only_reads=True))
    if args.snippet:
        print(snippet(cell.record) or "", end="")
        return 0
    task = (cell.record.get("labels") or ("",))[0]
    log = log_of(args.results, task, cell.key)
    found = provenance(cell.key, cell.record, log)
    # Older records have no time.
    written = datetime.fromtimestamp(cell.stack.stat().st_mtime, UTC).isoformat(timespec="seconds")
    found |= {"file": str(cell.stack), "time": found["time"] or written, "log_file": str(log or "")}
    found["rows"] = rows_of(sorted((args.results / "tables").glob("*.parquet")), cell.key)
    print(json.dumps(found, indent=2) if args.json else "\n".join(as_lines(found)))
    return 0


def find(start: str, store: "Store") -> "CellRecord":
    """Return the cell with this key, or the only cell whose key starts with `start`."""
    from rankfall.errors import RankfallError

    if not store.root.is_dir():
        raise RankfallError(f"{store.root} is missing: pass --results FOLDER, the folder of a run's results")
    keys = {record.key for record in store.records()}
    fitting = [start] if start in keys else sorted(key for key in keys if key.startswith(start))
    if not fitting:
        what = f"key {start!r}: no cell of {store.root} ({len(keys)} cells) has a key that starts with it"
        raise RankfallError(f"{what}\n  fix: name the run that has it, --results FOLDER")
    if len(fitting) > 1:
        more = f" and {len(fitting) - NAMED} more" if len(fitting) > NAMED else ""
        raise RankfallError(
            f"key {start!r}: {len(fitting)} cells have keys that start with it ({', '.join(fitting[:NAMED])}{more}); give more characters"
        )
    return store.find_cells(fitting)[fitting[0]]


def log_of(results: Path, task: str, key: str) -> Path | None:
    """Return the newest log of a job that trained the cell, found by the keys in the tables of the shards."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    work, suffix = results / "work", ".cells.parquet"
    tables = sorted((work / "train" / task).glob(f"*/*{suffix}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for table in tables:
        log = results / "logs" / table.relative_to(work).with_name(table.name.removesuffix(suffix) + ".log")
        try:
            if log.is_file() and key in pq.read_table(table, columns=["key"])["key"].to_pylist():
                return log
        except (OSError, pa.ArrowException):  # a damaged table
            continue
    return None


def rows_of(tables: list[Path], key: str) -> dict[str, int]:
    """Return table -> number of rows of this cell, for tables that have any."""
    import pyarrow.parquet as pq

    with_key = [path for path in tables if "key" in pq.read_schema(path).names]
    counts = {path.stem: len(pq.read_table(path, columns=["key"], filters=[("key", "==", key)])) for path in with_key}
    return {name: count for name, count in counts.items() if count}


def as_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the provenance as lines for a terminal."""
    labels = " / ".join(str(found.get(name)) for name in ("task", "architecture", "training"))
    yield f"{found['key']}  {labels}, seed {found['seed']}"
    yield f"status    {found['status']}{': ' + found['reason'] if found['reason'] else ''}"
    for split, metrics in (found["final"] or {}).items():
        yield f"{split:<9} " + ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())
    steps, seconds = _describe_number(found, "steps", "steps"), _describe_number(found, "seconds", "s", ".3g")
    yield f"cost      {steps}, {seconds}, {_describe_number(found, 'megabytes', 'MB')}"
    versions = ", ".join(f"{name} {version}" for name, version in (found["versions"] or {}).items())
    threads = _describe_number(found, "threads", "threads")
    yield f"machine   {found['host']}, {found['device']}, {found['dtype']}, {threads}; {versions}"
    yield f"processor {found['processor'] or 'not recorded'}"
    yield f"time      {found['time']}"
    yield f"commit    {found['commit'] or 'not recorded: the code was in no git repository'}"
    yield f"stack     {found['file']}"
    yield f"data      {found['data_key']}"
    rows = ", ".join(f"{name} {count}" for name, count in found["rows"].items())
    yield f"rows      {rows or 'in no table: the cell is from an earlier run, or no table is written yet'}"
    if found["installed"]:
        yield "installed " + ", ".join(f"{name} {version}" for name, version in found["installed"].items())
    yield f"code      {len(found['code'])} files on which its numbers depend, with digests of their syntax:"
    yield from (f"  {digest}  {file}" for file, digest in sorted(found["code"].items()))
    yield "config    computes it again (`rankfall show KEY --snippet > again.yaml`, `make run CONFIG=again.yaml`):"
    yield from (f"  {line}" for line in (found["snippet"] or "not recorded").splitlines())
    yield f"log       {found['log_file'] or 'none'}"
    yield from (f"  | {line}" for line in (found["log"] or "").splitlines())


def _describe_number(found: dict[str, Any], name: str, unit: str, form: str = "") -> str:
    return f"{unit} not recorded" if found[name] is None else f"{found[name]:{form}} {unit}"
