"""What a large grid costs when it grows: the jobs of a run after a finished one, counted by a dry run through the cluster's profile.

The finished run is made up: a store whose stacks hold every cell and no numbers, and empty files under the names that are planned.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from checkout import CONFIG, Checkout, changed

from rankfall.run.plan import Plan, make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.publish import publish
from rankfall.run.snakemake.run_plan import RunPlan
from rankfall.run.store import Store

STACK = 32
ON_CLUSTER = ("train", "measure")
ARCHITECTURES: dict[str, Any] = {
    "softmax": {"normaliser": "softmax", "mlp": "gelu"},
    "l2": {"normaliser": "l2", "mlp": "none"},
    "relu2": {"normaliser": "relu2", "mlp": "none"},
    "san": {"residual": "none", "mlp": "none"},
    "skip": {"mlp": "none", "position": "rope"},
    "added": {"mlp": "none", "mask": "causal"},  # not of the grid at first
}


def grid(seeds: int = 100, depths: int = 20, architectures: int = 5) -> dict[str, Any]:
    """Ten thousand cells of one task, for which 134 shards are planned."""
    entry = {
        "task": "sorting",
        "architecture": list(ARCHITECTURES)[:architectures],
        "training": "long",
        "depth": f"1..{depths}",
        "seed": f"0..{seeds - 1}",
    }
    return changed(
        CONFIG,
        tasks={"sorting": {}},
        architectures={name: ARCHITECTURES[name] for name in entry["architecture"]},
        trainings={"long": {"lr": 1.0e-3, "epochs": 30}},
        grid=[entry],
        measures={"paths": {}},
        figures={},
        compute={"engine": "plain", "threads": 1, "shard_minutes": 20},
    )


def finish(config: dict[str, Any], results: Path) -> None:
    """Write what a run of this configuration would leave, but for the numbers."""
    plan = make_plan(config)
    fill(plan, plan.cells, results)
    run = RunPlan.make(plan, config, results)
    for file in run.makers:
        (results / file).parent.mkdir(parents=True, exist_ok=True)
        (results / file).touch()
    publish(run)


def fill(plan: Plan, cells: Iterable[Cell], results: Path, status: str = "done") -> None:
    """Stacks and rows of these cells, as jobs leave them."""
    store, groups = Store(results / "store"), dict[str, list[Cell]]()
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    for group, members in groups.items():
        for start in range(0, len(members), STACK):
            some = members[start : start + STACK]
            keys, records = [cell.key for cell in some], [plan.origin(cell) | {"status": status} for cell in some]
            store.save_stack(group, keys, {"none": torch.zeros(len(some))}, records, {})
    for name, measure in plan.measures.items():
        for place in plan.shards if measure.needs == "cells" else ():
            keys = [plan.measure_key(name, cell) for cell in plan.measured_cells(name, *place)]
            store.save_rows(measure.component.name, {key: [] for key in keys})


# Runs a command and says what it used. A process of its own, since the largest child counts and a test has had others before.
MEASURED = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), flush=True)
sys.exit(code)
"""


@dataclass(frozen=True)
class Counted:
    """What a dry run says and costs."""

    jobs: dict[str, int]  # by rule
    seconds: float  # of a processor
    megabytes: float  # of its largest process
    output: str

    @property
    def submitted(self) -> int:
        """Jobs of the cluster."""
        return sum(self.jobs.get(rule, 0) for rule in ON_CLUSTER)


def run_measured(command: Sequence[str], checkout: Checkout) -> tuple[str, float, float]:
    """Run a command in a checkout. Return its output, seconds of a processor, and the MiB of its largest process."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        cwd=checkout.folder,
        env=checkout.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    output, _, used = done.stdout.rstrip().rpartition("\n")
    return output, *json.loads(used)


def count(checkout: Checkout, config: dict[str, Any]) -> Counted:
    """Dry-run a configuration in a checkout."""
    checkout.configure(config)
    # The last profile counts: this is the cluster's.
    command = checkout.command("--workflow-profile", "workflow/profiles/slurm", "--dry-run")
    output, seconds, megabytes = run_measured(command, checkout)
    jobs = {rule: int(number) for rule, number in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}
    jobs = {rule: number for rule, number in jobs.items() if rule not in ("all", "total")}
    return Counted(jobs, seconds, megabytes, output)


def finished(folder: Path, config: dict[str, Any]) -> Checkout:
    """A checkout whose run of this configuration has ended."""
    checkout = Checkout.make(folder, config)
    finish(config, checkout.results)
    return checkout


def steps(seeds: int = 100, depths: int = 20) -> dict[str, dict[str, Any]]:
    """The grid and what is added to it."""
    return {
        "nothing": grid(seeds, depths),
        "one seed": grid(seeds + 1, depths),
        "one depth": grid(seeds, depths + 1),
        "one architecture": grid(seeds, depths, 6),
    }
