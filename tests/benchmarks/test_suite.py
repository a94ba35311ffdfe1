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

from benchmarks import cells, clean, kinds, measures, memory, networks  # noqa: E402
from benchmarks.growth import exponent  # noqa: E402
from benchmarks.limits import Limits  # noqa: E402
from benchmarks.record import SCHEMA, Results  # noqa: E402


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


def test_an_exponent_is_fitted() -> None:
    assert exponent([2, 4, 8, 16], [3 * size**1.5 for size in (2, 4, 8, 16)]) == pytest.approx(1.5)


def test_shares_are_of_what_was_measured() -> None:
    from benchmarks.gpu.limits import Work

    found = Limits(arithmetic=1e9, copied=1e8).shares(Work(operations=1e6, state=1.0, unfused=1e4), rate=100.0)
    assert found == {"of_arithmetic": pytest.approx(0.1), "of_copy": pytest.approx(0.01)}


def test_rows_are_kept_at_once(tmp_path: Path) -> None:
    results = Results.of("steps", tmp_path, tiny=True)
    results.add("rate", 3.0, "member-steps/s", ratio=1.5, against="plain, alone")
    table = pq.read_table(tmp_path / "steps.parquet")
    assert table.schema.equals(SCHEMA)
    (row,) = table.to_pylist()
    assert (row["value"], row["ratio"], row["members"], row["tiny"]) == (3.0, 1.5, None, True)
    with pytest.raises(AssertionError, match="no column"):
        results.add("rate", 3.0, "member-steps/s", speed=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["steps", "growth", "cells", "measures", "planning", "memory", "watch"])
def test_each_subject_at_its_smallest(subject: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", subject, "--tiny", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pq.read_table(tmp_path / f"{subject}.parquet").to_pylist()
    assert rows and all(row["tiny"] and math.isfinite(row["value"]) for row in rows)
    assert any(row["ratio"] for row in rows) and (tmp_path / "bench.png").stat().st_size > 5000


def test_what_is_compiled_pays_from_some_steps_on() -> None:
    """Of two processes that take 200 steps a second, and 400 when compiled, each saves 5 ms a step."""
    assert kinds.pays_from(10.0, 400.0, 200.0) == pytest.approx(2000.0)
    assert kinds.pays_from(10.0, 200.0, 400.0) == math.inf
