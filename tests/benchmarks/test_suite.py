"""Tests every subject of `make bench` at its smallest, what `benchmarks/gpu.sh` counts, and all of it on a processor."""

import math
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.gpu.limits import count_work
from benchmarks.networks import CPU, gpu_settings

ROOT = Path(__file__).parents[2]


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["steps", "growth", "planning", "watch", "rivals"])
def test_each_subject_at_its_smallest(subject: str, tmp_path: Path) -> None:
    run([sys.executable, "-m", "benchmarks", subject, "--tiny", "--out", str(tmp_path)])
    rows = pq.read_table(tmp_path / f"{subject}.parquet").to_pylist()
    assert rows and all(row["tiny"] and not math.isnan(row["value"]) for row in rows)
    assert any(row["ratio"] for row in rows)


@pytest.mark.slow
def test_all_of_a_gpu_in_one_command(tmp_path: Path) -> None:
    run(["bash", str(ROOT / "benchmarks" / "gpu.sh"), "--device", "cpu", "--tiny", "--out", str(tmp_path)])
    sections = ("card", "bits", "agreement", "stacks", "resumed", "sweep", "compiled", "precision", "watched", "grids")
    tables = {name: pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in sections}
    assert all(row["tiny"] for rows in tables.values() for row in rows)
    assert {row["status"] for rows in tables.values() for row in rows} == {"ok", "skipped"}
    assert all(row["reason"] for rows in tables.values() for row in rows if row["status"] == "skipped" and row["shape"])
    rates = [row for row in tables["sweep"] if row["quantity"] == "rate" and row["engine"] == "plain"]
    assert len(rates) == 3 * 2 * 2
    assert all(row["value"] > 0 and row["limit_unfused"] < row["limit_state"] for row in rates)


@pytest.mark.parametrize("members", [1, 3])
def test_operations_of_a_step_are_those_of_its_products(members: int) -> None:
    """Count them by hand: in each layer four maps of a token, scores and mixtures; then the head; backward twice as much."""
    net = gpu_settings()["sorting"]
    stack, batch, objective = net.equal_members(members, CPU, 0.1), net.batch(members, CPU), net.objective()
    work = count_work(lambda: stack.step(objective, batch), stack)
    tokens, width, length, depth, classes = 30 * 8, 48, 8, 6, 10
    forward = depth * (4 * width * width + 2 * length * width) * tokens + width * classes * tokens
    assert work.operations == 6 * forward
    assert work.state == 10 * 4 * stack.weights.shape[1]
    assert work.unfused > 4 * work.state
