"""Cells an hour from configuration to table: a grid of sorting networks by the workflow, against a runner that starts one process a
configuration with a clean module, two at a time, which evaluates as often. Of the runner's processes a sample is run, two of each
architecture at the middle depth, whose cost is the mean over the depths, and again after the workflow, since a machine's speed drifts and
a sample takes seconds; of the workflow all cells are.

By a clock, for which the machine should be idle; and by the time of processors, which says the same on a busy one as if two were always
at work. The engine is the fast one where it serves. Its kernels are compiled before, as they are once for a version of the engine; what
that takes is a row of its own, and so is what jobs of the workflow say that they used.
"""

import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from benchmarks.clean import PARTS
from benchmarks.processes import ROOT, Used, run
from benchmarks.record import Results

DEPTHS, SEEDS, EPOCHS = 5, 20, 10
SAMPLED = 2  # processes of each architecture, each time
ARCHITECTURES: dict[str, Any] = {
    "SAN": {"residual": "none", "mlp": "none"},
    "SAN+skip": {"residual": "add", "mlp": "none"},
    "SAN+MLP": {"residual": "none", "mlp_residual": "none", "mlp": "gelu"},
    "transformer": {"residual": "add", "mlp": "gelu"},
}
USED = re.compile(r"^([\d.]+) s of processors,", re.MULTILINE)
COMPILE = "from rankfall.train.machine.engine import prepare; prepare()"
RUNNER = "one process a configuration, two at a time"


def measure(results: Results) -> None:
    depths, seeds, epochs = (1, 1, 1) if results.tiny else (DEPTHS, SEEDS, EPOCHS)
    names = list(PARTS)[:1] if results.tiny else list(PARTS)
    count = len(names) * depths * seeds
    sample = [(name, (depths + 1) // 2) for name in names for _ in range(SAMPLED)]
    with tempfile.TemporaryDirectory() as folder:
        home = {"XDG_CACHE_HOME": f"{folder}/cache"}
        compiled = run(["-c", COMPILE], given=home)
        before = runner(sample, epochs, Path(folder))
        ours = workflow(config(names, depths, seeds, epochs), Path(folder) / "checkout", home)
        after = runner(sample, epochs, Path(folder))
        for rule, seconds in spent(Path(folder) / "checkout" / "results" / "logs").items():
            results.add("processors", seconds, "s", network=f"{count} sorting networks", variant=f"jobs of {rule}")
    results.add("processors", compiled.seconds, "s", variant="compiling the kernels, once for a version of the engine")
    results.add("processors", ours.seconds, "s", network=f"{count} sorting networks", variant="workflow")
    for unit, theirs, our in (
        ("by a clock", [before.clock, after.clock], ours.clock),
        ("by two processors", [before.seconds / 2, after.seconds / 2], ours.seconds / 2),
    ):
        their = sum(theirs) / 2
        runs = [(f"{RUNNER}, {when}", seconds, len(sample)) for when, seconds in zip(("before", "after"), theirs)]
        for variant, seconds, cells in (*runs, (RUNNER, their, len(sample)), ("workflow", our, count)):
            results.add(
                "cells an hour", 3600 * cells / seconds, unit, network=f"{count} sorting networks", variant=variant,
                ratio=their / len(sample) / (seconds / cells), against=RUNNER,
            )  # fmt: skip


def runner(sample: list[tuple[str, int]], epochs: int, folder: Path) -> Used:
    """What all processes of a sample take, two at a time."""

    def one(place: int) -> Used:
        name, depth = sample[place]
        given = ["--parts", name, "--depth", str(depth), "--seed", str(place), "--epochs", str(epochs)]
        return run(["-m", "benchmarks.clean", *given, "--out", str(folder / f"{place}.json")])

    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        used = list(pool.map(one, range(len(sample))))
    return Used(sum(each.seconds for each in used), time.monotonic() - began)


def workflow(given: dict[str, Any], folder: Path, environment: dict[str, str]) -> Used:
    from checkout import Checkout

    made = Checkout.make(folder, given)
    return run(made.command()[1:], folder, environment)


def spent(logs: Path) -> dict[str, float]:
    """Seconds of processors that jobs have used, by rule: the last line of a job's log."""
    found: dict[str, float] = {}
    for path in sorted(logs.rglob("*.log")):
        if said := USED.search(path.read_text()):
            rule = path.relative_to(logs).parts[0]
            found[rule] = found.get(rule, 0.0) + float(said[1])
    return found


def config(names: list[str], depths: int, seeds: int, epochs: int) -> dict[str, Any]:
    default = yaml.safe_load((ROOT / "config.yaml").read_text())
    return {
        "name": "bench",
        "results": "results",
        "tasks": {"sorting": {}},
        "architectures": {name: ARCHITECTURES[name] for name in names},
        "trainings": {"short": {"lr": 1e-3, "epochs": epochs, "batch": 30}},
        "grid": [
            {
                "task": "sorting",
                "architecture": names,
                "training": "short",
                "depth": f"1..{depths}",
                "seed": f"0..{seeds - 1}",
            }
        ],
        "measures": {},
        "figures": {},
        "page": False,
        "compute": default["compute"],  # several jobs side by side
    }
