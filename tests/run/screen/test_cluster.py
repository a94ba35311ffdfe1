"""Guards that a run which is stopped takes its own jobs out of SLURM's queue, whatever Snakemake forgot, and nobody else's."""

import os
from pathlib import Path

import pytest

from rankfall.run.screen import child

OURS = "rankfall_0f3c2b1a-1111-4222-8333-123456789abc"
OTHER = "rankfall_0f3c2b1a-1111-4222-8333-123456789abd"
SQUEUE = """#!/bin/sh
echo "$@" >> {folder}/asked
cat {folder}/queue
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do echo $job >> {folder}/cancelled; sed -i "s/^$job [A-Z]* /$job COMPLETING /" {folder}/queue; done
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A queue of two runs, as SLURM would answer if it took no notice of what was asked for."""
    for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    jobs = f"1 RUNNING {OURS}\n2 PENDING {OURS}\n3 COMPLETING {OURS}\n4 RUNNING {OTHER}\n5_2 PENDING {OURS}\n6 PENDING x{OURS}\n"
    (tmp_path / "queue").write_text(jobs)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(child, "PAUSE", 0.0)
    return tmp_path


def test_its_own_jobs_are_cancelled_and_no_others(queue: Path) -> None:
    assert child.cancel_left(OURS) == ["1", "2", "5_2"]
    assert (queue / "cancelled").read_text().split() == ["1", "2", "5_2"]
    assert f"--user={os.getuid()} --name={OURS}" in (queue / "asked").read_text()
    assert child.cancel_left(OURS) == []
