"""Show what a run would compute and why: cells that are fresh, stale or new, and their cost."""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.design import Architecture
    from rankfall.run.plan.build import Plan
    from rankfall.run.snakemake.estimates import Estimate
    from rankfall.run.snakemake.status import Status

ARGUMENTS = """
--config FILE      the benchmark's config, YAML or JSON (default: config.yaml)
--results FOLDER   folder of results; by default the one that the config names
--json             print one JSON object
--measure-too      count measured cells as well
--calibrate FILE   only write what cells have cost, for `compute: {costs: FILE}`
--script           only print a shell script of all jobs, for a machine without Snakemake
--schema FILE      only write the JSON schema of a config
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.disk import write
    from rankfall.run.config.types import read
    from rankfall.run.plan import make_plan
    from rankfall.run.snakemake.run_plan import RunPlan
    from rankfall.run.snakemake.status import status

    if args.schema:
        from rankfall.run.config.schema import as_text as schema_text

        write(args.schema, schema_text())
        return 0
    if args.calibrate:
        return calibrate(args)
    raw = read(args.config)
    plan = make_plan(raw)
    planned = RunPlan.make(plan, raw, args.results)
    if args.script:
        from rankfall.run.snakemake.script import script

        print(script(planned, args.config), end="")
        return 0
    state = status(plan, planned, args.measure_too)
    print(as_json(plan, state) if args.json else as_text(plan, state))
    return 0


def calibrate(args: argparse.Namespace) -> int:
    """Write the measured costs of the store's cells. The file that the configuration names for them may not exist yet."""
    from rankfall.disk import write
    from rankfall.run.config.types import read
    from rankfall.run.plan import make_plan
    from rankfall.run.plan.history import measure_history
    from rankfall.run.store import Store

    raw = read(args.config)
    compute = raw.get("compute", {})
    if isinstance(compute, dict):  # otherwise `make_plan` raises an error
        raw["compute"] = {**compute, "costs": None}
    plan = make_plan(raw)
    content = measure_history(plan.cells, Store((args.results or Path(plan.config.results)) / "store").records())
    write(args.calibrate, json.dumps(content, indent=1) + "\n")
    count = sum(group["cells"] for group in content["groups"].values())
    print(
        f"{args.calibrate}: {count} measured cells of {len(content['groups'])} groups; others take {content['scale']} of the model's time"
    )
    return 0


def as_text(plan: "Plan", status: "Status") -> str:
    """Return the plan as text: a table, the reasons, the engines, and sums."""
    from rankfall.run.plan.engines import engines

    states = ["fresh", "stale", "new", *["kept"] * any(line.kept for line in status.lines)]
    head = ("task", "architecture", "training", "cells", *states, "to compute")
    rows = [(*(getattr(line, name) for name in head[:-1]), format_duration(line.seconds)) for line in status.lines]
    widths = [max(len(str(row[column])) for row in [head, *rows]) for column in range(len(head))]
    measures = [f"{name}: {measured} of {cells} cells measured" for name, (measured, cells) in status.measures.items()]
    blocks = [
        [_row(row, widths) for row in [head, *rows]],
        title("why:", (f"  {count} {state}: {why}" for (state, why), count in status.reasons.most_common())),
        describe_engines(engines(plan.cells, plan.config.compute, status.trained)),
        title(
            "cells that a measure without `cells` leaves out, since it cannot measure them:",
            (f"  {name}: {n}: {why}" for name, reasons in plan.left_out.items() for why, n in reasons.most_common()),
        ),
        measures,
        describe_ceilings(plan),
    ]
    missing, kept = sum(line.stale + line.new for line in status.lines), sum(line.kept for line in status.lines)
    heading = f"{plan.config.name}: {len(plan.cells)} cells"
    if missing:
        source = f"scaled by {status.measured} measured cells" if status.measured else "a rough estimate"
        jobs = f"{missing} to compute in {status.jobs} of {status.shards} jobs"
        cost = f"about {format_duration(status.seconds)} of one core ({source})"
        blocks.append([f"{heading}, {jobs}, {cost}", *advise_gpu(plan)])
    elif not kept:
        blocks.append([f"{heading}, all of them in the store"])
    blocks.append([describe_run(status.run, plan.config.compute.workers)] if status.run else [])
    blocks.append(title("jobs that the plan before had, and what is different:", (f"  {line}" for line in status.why)))
    if kept:
        reason = "their networks are no longer in the store, but the tables have all that is asked of them"
        blocks.append([f"{heading}, {kept} of them kept: {reason}, so that a run does not compute them again"])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def title(text: str, lines: Iterable[str]) -> list[str]:
    """Return lines below a title; nothing without lines."""
    listed = list(lines)
    return [text, *listed] if listed else []


def describe_engines(by: Mapping[tuple[str, str], Counter[str]]) -> list[str]:
    """Return lines that say which engine trains which architectures, and why the others are not trained by the machine."""
    kinds = {"machine": "machine, traced", "machine_gpu": "machine, traced, on a GPU", "plain": "plain, autograd"}
    trained = sorted(by.items(), key=lambda item: -item[1].total())
    lines = (
        f"  {n.total()} {kinds[engine]}: {', '.join(sorted(n))}" + f" ({why})" * bool(why)
        for (engine, why), n in trained
    )
    return title("engines of training steps:", lines)


def describe_ceilings(plan: "Plan") -> list[str]:
    """Return warnings of masks that hide tokens which a task's answers need, so that no network can answer everything correctly."""
    masked = {
        (cell.task.name, cell.task.task, cell.architecture): None
        for cell in plan.cells
        if cell.architecture.mask is not None and cell.architecture.mask.name != "none"
    }
    if not masked:
        return []
    from rankfall.position.attainable import attainable, attainable_unmasked

    warnings: dict[str, list[Architecture]] = {}
    for name, task, architecture in masked:
        best, _ = attainable(task, architecture)
        without = attainable_unmasked(task)
        if best is not None and without is not None and best < without - 1e-9:
            limit = f"can expect an accuracy on {name} above {best:.3f} ({without:.3g} without the mask)"
            warning = f"warning: no network with the mask {architecture.mask} {limit}"
            warnings.setdefault(warning, []).append(architecture)
    return [f"{warning}: {name_depths(architectures)}" for warning, architectures in warnings.items()]


def name_depths(architectures: Iterable["Architecture"]) -> str:
    """Write the names of architectures with their depths."""
    depths: dict[str, set[str]] = {}
    for architecture in sorted(architectures, key=lambda architecture: (architecture.name, architecture.depth)):
        depths.setdefault(architecture.name, set()).add(str(architecture.depth))
    return "; ".join(f"{name}, depth {', '.join(sorted(its_depths, key=int))}" for name, its_depths in depths.items())


KINDS = {
    "training": ("train",),
    "measures": ("measure", "measure_freely"),
    "figures and page": ("figure", "page"),
    "the rest": ("data", "table"),
}


def describe_run(run: "dict[str, Estimate]", workers: int) -> str:
    """Return two lines: the processor time of the jobs to do, by kind, and how long a run takes by the clock on this machine. `workers`:
    processes of a job."""
    from rankfall.report.labels import many
    from rankfall.run.snakemake.estimates import between, by_rule

    cores, load, seconds = count_cores(), read_load(), by_rule(run)
    sums = {kind: sum(seconds[rule] for rule in rules) for kind, rules in KINDS.items()}
    parts = ", ".join(f"{kind} {format_duration(total)}" for kind, total in sums.items() if total)
    work = f"left to do: {many(len(run), 'job')}, about {format_duration(sum(seconds.values()))} of processor time ({parts})"
    low, high = map(format_duration, between(run, cores, 0.0, workers))
    clock = f"a run takes {low} to {high} by the clock on {many(cores, 'core')} that nothing else uses"
    if load >= BUSY:
        low, high = map(format_duration, between(run, cores, load, workers))
        clock += f"; {low} to {high} at this machine's load of {load:.1f}, if it stays"
    return f"{work}\n{clock}"


BUSY = 0.5  # load average from which other processes slow a run down


def read_load() -> float:
    """Return the load average over a minute on the cores that this process may use; 0 if unknown."""
    return os.getloadavg()[0] * count_cores() / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


LONG = 36000.0  # seconds of one network on a core from which a GPU is advised
GPU = 4e13  # operations per second of a large GPU in matrix products in float32


def advise_gpu(plan: "Plan") -> list[str]:
    """Return a line that advises a GPU if the longest network takes too long on a processor."""
    from rankfall.run.plan.cost import step_operations, steps_of

    longest = max(plan.cells, key=lambda cell: cell.cost.seconds)
    if longest.cost.seconds < LONG:
        return []
    steps, *sizes = steps_of(longest.task, longest.training)
    count = steps * step_operations(longest.architecture, *sizes)
    return [
        f"the longest network takes {format_duration(longest.cost.seconds)} of one core, {count:.1e} operations in its layers: more than a "
        f"processor is for. A GPU that does {GPU:.0e} of them a second takes {format_duration(count / GPU)} "
        "(docs/cluster.md, On a GPU)"
    ]


def as_json(plan: "Plan", status: "Status") -> str:
    """Return the plan as JSON for programs, with all shards."""
    from dataclasses import asdict

    from rankfall.run.plan.engines import engines
    from rankfall.run.snakemake.estimates import between, by_rule

    shards = [
        {"task": task, "shard": shard, "cells": [cell.key for cell in cells]}
        for (task, shard), cells in plan.shards.items()
    ]
    document = {
        "name": plan.config.name,
        "cells": len(plan.cells),
        "lines": [asdict(line) for line in status.lines],
        "reasons": [{"state": state, "why": why, "cells": n} for (state, why), n in status.reasons.most_common()],
        "engines": [
            {"engine": engine, "why": why, "cells": cells.total(), "architectures": dict(cells)}
            for (engine, why), cells in engines(plan.cells, plan.config.compute, status.trained).items()
        ],
        "ceilings": describe_ceilings(plan),
        "left_out": {name: dict(omitted) for name, omitted in plan.left_out.items()},
        "jobs": status.jobs,
        "seconds": status.seconds,
        "scale": status.scale,
        "run": {
            "cores": count_cores(),
            "load": read_load(),
            "seconds": between(status.run, count_cores(), 0.0, plan.config.compute.workers),
            "seconds_at_load": between(status.run, count_cores(), read_load(), plan.config.compute.workers),
            "by_rule": by_rule(status.run),
        },
        "measures": {name: {"measured": n, "cells": cells} for name, (n, cells) in status.measures.items()},
        "shards": shards,
    }
    return json.dumps(document, indent=1)


def format_duration(seconds: float) -> str:
    """Format a duration with two digits in a suitable unit."""
    if seconds == 0:
        return "-"
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}" if seconds / size < 10 else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _row(row: tuple[object, ...], widths: list[int]) -> str:
    """Align a row of the table: words to the left, numbers to the right."""
    cells = [
        str(item).ljust(w) if column < 3 else str(item).rjust(w) for column, (item, w) in enumerate(zip(row, widths))
    ]
    return "  ".join(cells).rstrip()
