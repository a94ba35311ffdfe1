"""Which outputs are present and up to date, and which have to be made again and why: by the digests that they keep, not by their times.

A table or figure with the planned digest is up to date, because the digests of its shards are part of its own. So
shards are read only where a table has to be made, or where one is newer than its table, which makes Snakemake make the table again; a run
with nothing to do opens a few files.

Snakemake's records in `.snakemake/` may be lost, or belong to other files. So it is told to run the jobs of outputs that are `stale` here;
missing outputs it finds itself.
"""

import json
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rankfall.disk import describe_non_file
from rankfall.report.sealed import MARK, is_whole
from rankfall.report.style import CAPTION, MADE, digest_of
from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints, Part
from rankfall.run.snakemake.lookups import InStore, ShardJob
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.reasons import describe_changed_code

Record = dict[
    str, str
]  # `made` and `made_of`, as an output keeps them; of a table its name, and that alone if it is another's
RECORD = re.compile(r"\n\n\.\. made: (\{.*\})\n\Z")  # at the end of a caption, a comment for whoever reads it
PAGE_MARK = "<!-- made: "  # the same of the page
CHANGED = "was changed after it was written"
SHOWN = 12  # reasons that are told


@dataclass
class OutputStates:
    """The state of the outputs of a plan."""

    stale: dict[str, str] = field(default_factory=dict)  # an output that is there -> why it is made again
    missing: list[str] = field(default_factory=list)
    computing: set[ShardJob] = field(default_factory=set)
    lookups: set[ShardJob] = field(default_factory=set)  # jobs that have nothing to compute
    left: dict[ShardJob, list[Cell]] = field(default_factory=dict)  # job -> its cells that the store has not

    @property
    def right(self) -> bool:
        """Whether all tables and figures are what the plan asks for."""
        return not self.stale and not self.missing

    @property
    def shards(self) -> set[tuple[str, str]]:
        """(task, shard) whose networks a job needs to compute, or to compute with."""
        return {job.place for job in self.computing}

    def lines(self) -> list[str]:
        """The reasons in words, the most frequent first."""
        counts = Counter(self.stale.values())
        first = {why: path for path, why in reversed(self.stale.items())}
        lines = []
        for why, count in counts.most_common(SHOWN):
            others = f" and {count - 1} more" if count > 1 else ""
            lines.append(f"{first[why]}{others}: {why}; made again")
        return lines + [f"... and {len(counts) - SHOWN} more reasons"] * (len(counts) > SHOWN)


def inspect_outputs(plan: Plan, fingerprints: JobFingerprints, outputs: Outputs) -> OutputStates:
    """Look at the tables and figures, and at the shards of tables that are not right."""
    found = OutputStates()
    for figure in sorted(plan.figures):
        _look(outputs.picture(figure), _of_picture(outputs, figure), fingerprints.figure(figure), found)
    if plan.config.page:
        _look(outputs.page, _of_page(outputs.page), fingerprints.page(), found)
    wanted: dict[str, Part] = {}  # what tables that are not right are made from
    for table in fingerprints.tables:
        path = outputs.table(table)
        right = _look(path, record_of(path, table), fingerprints.table(table), found)
        parts = fingerprints.parts(table, outputs)
        if not right or _any_newer(parts, path):
            wanted |= {part.path: part for part in parts}
    jobs = set()
    for path, part in wanted.items():
        if not _look(path, record_of(path, part.table), part.fingerprint, found) and part.job is not None:
            jobs.add(part.job)
    store = InStore(plan, outputs.folder)
    found.lookups = {job for job in jobs if store.has(job)}
    found.computing = jobs - found.lookups
    for place in sorted(found.shards):  # a measure's job waits for its shard to be trained, and that for the data
        path, job = outputs.cells(*place), ShardJob(*place)
        if not _look(path, record_of(path, "cells"), fingerprints.train(*place), found) and job not in found.computing:
            (found.lookups if store.has(job) else found.computing).add(job)
    for task in sorted({job.task for job in found.computing if not job.measure}):
        path = outputs.data(task)
        _look(path, record_of(path, "datasets"), fingerprints.data(task), found)
    found.left = {job: store.left(job) for job in found.computing}
    return found


def right(plan: Plan, fingerprints: JobFingerprints, outputs: Outputs) -> tuple[list[str], list[str]]:
    """The tables and the figures that are what the plan asks for, whatever else is not."""

    def is_right(record: Record | None, fingerprint: JobFingerprint) -> bool:
        return record is not None and record.get("made") == fingerprint.digest

    tables = [
        name for name in fingerprints.tables if is_right(record_of(outputs.table(name), name), fingerprints.table(name))
    ]
    figures = [name for name in plan.figures if is_right(_of_picture(outputs, name), fingerprints.figure(name))]
    return tables, sorted(figures)


def _look(path: str, record: Record | None, fingerprint: JobFingerprint, found: OutputStates) -> bool:
    """Whether an output is up to date; if not, the reason is recorded."""
    if record is not None and record.get("made") == fingerprint.digest:
        return True
    if record is None:
        if path not in found.missing:
            found.missing.append(path)
    elif path not in found.stale:
        found.stale[path] = _why(record, fingerprint)
    return False


def _any_newer(parts: list[Part], path: str) -> bool:
    """Whether Snakemake will make a table that is right again, since a file that it is made from is newer. Then those must be right too."""
    made = os.lstat(path).st_mtime_ns
    for part in parts:
        try:
            if os.lstat(part.path).st_mtime_ns > made:
                return True
        except OSError:  # a shard that is missing is no reason for Snakemake
            continue
    return False


def _why(record: Record, fingerprint: JobFingerprint) -> str:
    """How an output's record differs from its job's fingerprint."""
    if CHANGED in record:
        return CHANGED
    if record.keys() == {"table"}:
        return f"holds the table {record['table']!r}"
    try:
        before = json.loads(record["made_of"])
        if before["code"] != dict(fingerprint.files()):
            return describe_changed_code(before["code"], fingerprint.files())
        if before["what"] != fingerprint.what:
            return f"made of {before['what']}, where the configuration says {fingerprint.what}"
        return "made for other cells or options, or from other files"
    except (KeyError, ValueError, TypeError):
        return "does not say what it was made for"


def record_of(path: str, table: str) -> Record | None:
    """A table's record of what it was made from; None where there is no file, empty where it has no readable record. Of a file with
    another table that name alone: the tables of a shard's cells and of their training are made by one job, so their digests agree.
    Of a file that is not as it was written that alone.
    """
    if not os.path.lexists(path):
        return None
    if describe_non_file(path):
        return {}
    import pyarrow as pa  # a plan of what has never run needs none of it
    import pyarrow.parquet as pq

    try:
        content = Path(path).read_bytes()
        if not is_whole(content) and MARK in content:
            return {CHANGED: ""}
        about = pq.read_metadata(pa.BufferReader(content)).metadata or {}
        record = {name: about[f"rankfall.{name}".encode()].decode() for name in ("table", "made", "made_of")}
        if record["table"] != table:
            return {"table": record["table"]}
        return record if is_whole(content) else {}
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError):
        return {}


def _of_picture(outputs: Outputs, figure: str) -> Record | None:
    """The same for a figure, which says it in its caption, together with the digests of all its files and of the caption."""
    picture = Path(outputs.picture(figure))
    if not picture.exists():
        return None
    try:
        text = Path(outputs.caption(figure)).read_text(encoding="utf-8")
        found = RECORD.search(text)
        if not found:
            return {}
        record: Record = json.loads(found[1])
        there = {suffix: digest_of(picture.with_suffix(f".{suffix}").read_bytes()) for suffix in MADE}
        there[CAPTION] = digest_of(text[: found.start()].encode())
        return record if there.items() <= record.items() else {CHANGED: ""}
    except (OSError, ValueError):
        return {}


def _of_page(path: str) -> Record | None:
    """The same for the page, which says it in a comment at its end, together with the digest of all before it."""
    try:
        text, _, comment = Path(path).read_text(encoding="utf-8").rpartition(PAGE_MARK)
        record: Record = json.loads(comment.removesuffix(" -->\n"))
        if "page" not in record:
            return {}
        return record if record["page"] == digest_of(text.encode()) else {CHANGED: ""}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError):
        return {}
