"""Print the units that a run computes: the key of each, and a digest of its result.

Runs the whole pipeline of one source tree, first on `sys.path`, on the smallest networks, through the command line and without Snakemake.
Units have four kinds:

    data, cell, rows      entries of the store by their keys
    job                   a rule with its wildcards: the digest of its inputs, and a digest of the file that it writes
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

TEXT = "text.tsv"  # data that a configuration names: an option of memorization
SMALL = {"heads": 2, "width": 8, "depth": 2}
CONFIG: dict[str, Any] = {
    "name": "mutants",
    "results": "results",
    "tasks": {
        "sorting": {"train": 20, "test": 10, "length": 5, "symbols": 6},
        "convex_hull": {"train": 20, "test": 10, "points": 5},
        "memorization": {"text": TEXT, "train": 12, "test": 6, "length": 6, "vocabulary": 60},
        "circle": {"points": 40},
    },
    "architectures": {
        "plain": {**SMALL, "residual": "none", "norm": "none", "position": "none"},
        "soft": {**SMALL, "mlp": "gelu", "mask": "causal"},
        "far": {**SMALL, "normaliser": "l2", "position": "rope", "norm": "rms", "norm_placement": "pre", "mlp": "relu"},
        "urpe": {**SMALL, "normaliser": "urpe", "position": "toeplitz", "sentinels": "bos", "residual": "depth_scaled"},
        "set": {**SMALL, "position": "none", "embedding": "coordinates"},
    },
    "trainings": {
        "init": {"epochs": 0},
        "short": {"lr": 1.0e-3, "epochs": 2, "batch": 10, "dropout": 0.1},
        "other": {"optimizer": "adamw", "schedule": "cosine", "lr": 1.0e-3, "epochs": 2, "batch": 10, "clip": 1.0},
    },
    "grid": [
        {"task": "sorting", "architecture": "plain", "training": "init", "seed": [0, 1]},
        {"task": "sorting", "architecture": ["soft", "far"], "training": "short", "seed": [0, 1]},
        {"task": "sorting", "architecture": "urpe", "training": "other", "seed": 0},
        {"task": "convex_hull", "architecture": "set", "training": "short", "seed": 0},
        {"task": "memorization", "architecture": "soft", "training": "other", "seed": 0},
        {"task": "circle", "architecture": "plain", "training": "short", "depth": 1, "seed": 0},
    ],
    "measures": {
        "paths": {"cells": {"architecture": ["soft", "set"]}, "counts": [2], "repeats": 2},
        "residuals": {"cells": {"task": "sorting"}},
        "law": {"cells": {"architecture": "plain", "task": "sorting"}},
        "decomposition": {"cells": {"architecture": "plain", "task": "sorting"}},
        "circle": {"cells": {"task": "circle"}, "steps": 5},
        "orders": {"normalisers": ["softmax", "l2"], "positions": ["none"], "sentinels": ["none"], "draws": 2},
        "path_counts": {},
        "reproduction": {},
    },
    "figures": {"paths": {"task": "sorting"}, "path_counts": {}},
    # RANKFALL_ENGINE=auto uses the fast engine too, which compiles half a minute after each edit of its code.
    "compute": {"threads": 1, "shard_minutes": 30, "engine": os.environ.get("RANKFALL_ENGINE", "plain")},
}
NEED_ALL_CELLS = ("measure_freely", "table", "figure")  # rules


def write_text(folder: Path) -> None:
    """Write sentence pairs in the format of GLUE's RTE."""
    rows = "".join(f"the cat {n} sat on the mat {n % 5}\twas it number {n} or {n + 1}\n" for n in range(20))
    (folder / TEXT).write_text(f"sentence1\tsentence2\n{rows}")


def survey(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Run the pipeline in the working directory `folder`. Return kind -> name -> [key, digest]; a failed unit has the digest `broken`."""
    from rankfall import cli
    from rankfall.run.plan import make_plan
    from rankfall.run.snakemake.jobs import PlanJobs
    from rankfall.run.snakemake.script import OPTIONS

    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    planned = PlanJobs(make_plan(CONFIG))
    jobs: dict[str, list[str]] = {}
    for job in planned.all_jobs:
        if job.kind == "page":
            continue
        output, *others = (f"results/{file}" for file in job.files)
        names = [f"--{name}={value}" for name, value in zip(OPTIONS[job.kind], job.names)]
        last = {"train": ["--training-out"], "figure": ["--caption"]}.get(job.kind, [])
        command = [job.kind, "--config", str(config), *names, "--out", output, *last, *others[-1:]]
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                done = cli.main(command) == 0
            except Exception:  # an edit may raise anything
                done = False
        name = " ".join([job.rule, *job.names])
        jobs[name] = [job.digest, _digest_output(Path(output)) if done else "broken"]
    stored = _read_store(planned.plan, Path("results/store"))
    if any(digest == "broken" for _, digest in stored["cell"].values()):
        jobs |= {name: [key, "broken"] for name, (key, _) in jobs.items() if name.split()[0] in NEED_ALL_CELLS}
    return {"job": jobs, **stored}


def _digest_output(path: Path) -> str:
    """Return the digest of a table's rows without provenance and keys, or of a picture and its caption. Failed cells are `broken`."""
    if path.suffix == ".png":
        caption, *_ = path.with_suffix(".rst").read_bytes().partition(b"\n\n.. made: ")
        return _digest(path.read_bytes(), caption)
    files = [path, *path.parent.glob(path.name.replace(".cells.", ".training."))]
    rows = [_read_rows(file) for file in files]
    return "broken" if None in rows else _digest(*(row for row in rows if row is not None))


def _read_rows(path: Path) -> str | None:
    import pyarrow.parquet as pq

    data = pq.read_table(path)
    if "status" in data.column_names and "failed" in data["status"].to_pylist():
        return None
    name = data.schema.metadata[b"rankfall.table"].decode()
    ignored = _provenance(name) | {"key", "data_key"}
    rows = [
        json.dumps(row, sort_keys=True) for row in data.drop_columns(sorted(ignored & {*data.column_names})).to_pylist()
    ]
    return "\n".join(sorted(rows))


def _provenance(table: str) -> set[str]:
    from rankfall.report.schema import schema

    return {column.name for column in schema(table).columns if column.provenance}


def _read_store(plan: Any, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Return the units of the store: data sets, networks with their training histories, and measured rows."""
    from rankfall.run.store import Store

    store = Store(folder)
    data, cells, rows = {}, {}, {}
    for cell in plan.cells:
        name = " ".join([*cell.labels, f"depth {cell.architecture.depth}", f"seed {cell.seed}"])
        for stack in store.load_cells([cell.key], cell.group):
            member = stack.keys.index(cell.key)
            if stack.records[member]["status"] == "failed":
                cells[name] = [cell.key, "broken"]
                continue
            tensors = [value[member].numpy().tobytes() for _, value in sorted(stack.tensors.items())]
            cells[name] = [cell.key, _digest(*tensors)]
        if (folder / "data" / f"{cell.data_key}.safetensors").is_file():
            fields = vars(store.dataset(cell.data_key, dict))
            parts = [v.numpy().tobytes() if hasattr(v, "numpy") else repr(v) for _, v in sorted(fields.items())]
            data[f"{cell.task.name} seed {cell.seed}"] = [cell.data_key, _digest(*parts)]
    for name, measure in plan.measures.items():
        by_cell = [
            (f"{name} {cell.labels} depth {cell.architecture.depth} seed {cell.seed}", plan.measure_key(name, cell))
            for cell in plan.cells
            if measure.needs == "cells"
        ]
        for label, key in by_cell or [(name, plan.measure_key(name))]:
            for measured in store.find_rows(measure.component.name, [key]).values():
                numbers = [{name: row[name] for name in row.keys() - _provenance(measure.table)} for row in measured]
                rows[label] = [key, _digest(json.dumps(numbers, sort_keys=True))]
    return {"cell": cells, "data": data, "rows": rows}


def _digest(*parts: str | bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.encode() if isinstance(part, str) else part)
        whole.update(b"\0")
    return whole.hexdigest()[:20]


def main(tree: str) -> None:
    """Print the units of a source tree as JSON, with the files of the package that the run opens, and those that keys name."""
    from rankfall.run.plan import make_plan
    from rankfall.run.snakemake.jobs import PlanJobs

    opened: set[str] = set()
    here = f"{tree}{os.sep}rankfall{os.sep}"

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str) and args[0].startswith(here) and args[0].endswith(".py"):
            opened.add(args[0].removeprefix(here))

    sys.addaudithook(note)
    units = survey(Path.cwd())
    codes = (job.code for job in PlanJobs(make_plan(CONFIG)).all_jobs if job.kind != "page")
    used = {name.removeprefix("rankfall/") for code in codes for name in code if name.startswith("rankfall/")}
    print(json.dumps({**units, "opened": sorted(opened), "used": sorted(used & opened)}))


if __name__ == "__main__":
    main(sys.argv[1])
