"""The benchmark suite: what it compares with is the same network, what it fits is an exponent; slow: all of it, tiny."""

import math
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from rankfall.run.plan import make_plan

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks import cells, clean, measures, memory, networks  # noqa: E402


@pytest.mark.parametrize("short", clean.NETWORKS)
def test_the_clean_module_is_the_same_network(short: str) -> None:
    """As many numbers, and batches of the same shape, as the network of the default run."""
    members, batch, _ = networks.stack(networks.HEADLINES[short], 1)
    shape = clean.NETWORKS[short]
    assert sum(value.numel() for value in clean.Network(shape, 0.0).parameters()) == members.weights.shape[1]
    assert batch.inputs.shape[1:3] == (shape.batch, shape.length)


def test_the_clean_module_learns() -> None:
    found = clean.train("SAN+skip", 1, 0, 12)
    losses, accuracies = found["course"][::2], found["course"][1::2]
    assert len(losses) == 12 and losses[-1] < losses[0] and accuracies[-1] > accuracies[0] + 0.1
    assert found["test"] == found["course"][-2:] and found["train"][1] > accuracies[0] + 0.1


def test_configurations_of_benchmarks_are_valid() -> None:
    """At full size, which no test runs: peak memory ended with a task that had been given longer sequences."""
    options = yaml.safe_load((ROOT / "config.yaml").read_text())["measures"]
    given = [memory.config(task, 3) for task in memory.TASKS]
    given += [measures.config(measures.NAMES, options, measures.MANY)]
    given += [cells.config(list(cells.ARCHITECTURES), cells.DEPTHS, cells.SEEDS, cells.EPOCHS)]
    assert [len(make_plan(raw).cells) for raw in given] == [3, 3, measures.MANY, 400]


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["steps", "growth", "cells", "measures", "planning", "memory", "watch"])
def test_each_subject_at_its_smallest(subject: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", subject, "--tiny", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pq.read_table(tmp_path / f"{subject}.parquet").to_pylist()
    assert rows and all(row["tiny"] and math.isfinite(row["value"]) for row in rows)
    assert any(row["ratio"] for row in rows) and (tmp_path / "bench.png").stat().st_size > 5000
