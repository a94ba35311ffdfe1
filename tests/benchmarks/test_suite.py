"""Tests every subject of `make bench` at its smallest."""

import math
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["steps", "growth", "planning", "watch", "rivals"])
def test_each_subject_at_its_smallest(subject: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", subject, "--tiny", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pq.read_table(tmp_path / f"{subject}.parquet").to_pylist()
    assert rows and all(row["tiny"] and not math.isnan(row["value"]) for row in rows)
    assert any(row["ratio"] for row in rows)
