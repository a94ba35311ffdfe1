"""`make run` with the cluster's profile: what it shows while jobs are in the queue, and that Ctrl-C leaves their checkpoints."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import Checkout
from cluster import Cluster, wait_for
from runs import HURRY, PROFILE, ClusterCheckout, nothing_lost

pytestmark = pytest.mark.slow


def begin(place: ClusterCheckout, said: Path) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "rankfall.cli", "run", "--profile", PROFILE, "--", *HURRY]
    environment = place.environment() | {"PYTHONPATH": str(place.folder / "src")}
    with said.open("wb") as file:
        return subprocess.Popen(
            words, cwd=place.folder, env=environment, stdout=file, stderr=file, start_new_session=True
        )


def test_a_run_is_shown_stopped_and_ended(
    cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout, tmp_path: Path
) -> None:
    place, said = checkout, tmp_path / "said"
    run = begin(place, said)
    try:
        place.wait_until_in_the_middle()
        os.kill(run.pid, signal.SIGINT)
        assert run.wait(120) == 130
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert "==> stopped after" in said.read_text()
    assert f"==> to go on: make run PROFILE={PROFILE} ARGS=" in said.read_text()
    assert not list((place.folder / ".snakemake" / "locks").glob("*"))
    wait_for("the job to be gone", lambda: not cluster.running("train") and not place.pids(), 60)
    kept = place.finished()
    assert kept
    run = begin(place, said)
    try:
        assert run.wait(280) == 0, said.read_text()
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    lines = said.read_text().splitlines()
    assert any("] train sorting 0: " in line for line in lines) and any(line.startswith("==> done: ") for line in lines)
    assert "resuming a stack of 1 at step" in place.log()
    nothing_lost(place, kept, undisturbed)
