"""Count the jobs that a cluster gets when a finished grid of ten thousand cells grows by a seed, a depth or an architecture.

    python -m benchmarks.increments

Nothing is computed: the files of the finished run are empty, under the names that are planned, and a dry run through the cluster's profile
counts the jobs.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "workflow"))
from checkout import CONFIG, Checkout, changed

from rankfall.run.plan import make_plan
from rankfall.run.snakemake.publish import publish
from rankfall.run.snakemake.run_plan import RunPlan

ARCHITECTURES: dict[str, Any] = {
    "softmax": {"normaliser": "softmax", "mlp": "gelu"},
    "l2": {"normaliser": "l2", "mlp": "none"},
    "relu2": {"normaliser": "relu2", "mlp": "none"},
    "san": {"residual": "none", "mlp": "none"},
    "skip": {"mlp": "none", "position": "rope"},
    "added": {"mlp": "none", "mask": "causal"},  # not of the grid at first
}


def grid(seeds: int = 100, depths: int = 20, architectures: int = 5) -> dict[str, Any]:
    """Return the configuration of ten thousand cells of one task, for which 134 shards are planned."""
    names = list(ARCHITECTURES)[:architectures]
    axes = {"architecture": names, "depth": f"1..{depths}", "seed": f"0..{seeds - 1}"}
    return changed(
        CONFIG,
        tasks={"sorting": {}},
        architectures={name: ARCHITECTURES[name] for name in names},
        trainings={"long": {"lr": 1.0e-3, "epochs": 30}},
        grid=[{"task": "sorting", "training": "long", **axes}],
        measures={"paths": {}},
        figures={},
        compute={"engine": "plain", "threads": 1, "shard_minutes": 20},
    )


def grow_grid() -> dict[str, dict[str, Any]]:
    """Return what is added to the grid -> the configuration."""
    added = {
        "nothing": (100, 20, 5),
        "one seed": (101, 20, 5),
        "one depth": (100, 21, 5),
        "one architecture": (100, 20, 6),
    }
    return {name: grid(*sizes) for name, sizes in added.items()}


def make_finished(folder: Path, config: dict[str, Any]) -> Checkout:
    """Make a checkout with the files that a run of this configuration leaves."""
    checkout = Checkout.make(folder, config)
    run = RunPlan.make(make_plan(config), config, checkout.results)
    for file in run.makers:
        (checkout.results / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout.results / file).touch()
    publish(run)
    return checkout


# Runs a command and says what it used. A process of its own, since the largest child counts and the caller has had others before.
MEASURED = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), flush=True)
sys.exit(code)
"""


def run_measured(command: Sequence[str], checkout: Checkout) -> tuple[str, float, float]:
    """Run a command in a checkout. Return its output, seconds of a processor, and the MiB of its largest process."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        cwd=checkout.folder, env=checkout.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    output, _, used = done.stdout.rstrip().rpartition("\n")
    return output, *json.loads(used)


@dataclass(frozen=True)
class DryRun:
    """What a dry run says and costs."""

    jobs: dict[str, int]  # by rule
    seconds: float  # of a processor
    megabytes: float  # of its largest process

    @property
    def submitted(self) -> int:
        """Return the number of jobs of the cluster."""
        return self.jobs.get("train", 0) + self.jobs.get("measure", 0)


def dry_run(checkout: Checkout, config: dict[str, Any]) -> DryRun:
    """Count the jobs of a configuration in a checkout."""
    checkout.configure(config)
    # The last profile counts: this is the cluster's.
    command = checkout.command("--workflow-profile", "workflow/profiles/slurm", "--dry-run")
    output, seconds, megabytes = run_measured(command, checkout)
    jobs = {rule: int(number) for rule, number in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}
    return DryRun({rule: jobs[rule] for rule in jobs if rule not in ("all", "total")}, seconds, megabytes)


if __name__ == "__main__":
    configs = grow_grid()
    with tempfile.TemporaryDirectory() as folder:
        checkout = make_finished(Path(folder) / "checkout", configs["nothing"])
        print(f"{'added':<18}{'cluster jobs':>14}{'CPU s':>8}{'MiB':>7}")
        for added, config in configs.items():
            cost = dry_run(checkout, config)
            print(f"{added:<18}{cost.submitted:>14}{cost.seconds:>8.1f}{cost.megabytes:>7.0f}", flush=True)
