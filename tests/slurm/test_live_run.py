"""`make run` with the cluster's profile: what it shows while jobs are in the queue, and that Ctrl-C leaves their checkpoints."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import Checkout
from cluster import Cluster, wait_for
from runs import HURRY, PROFILE, ClusterCheckout, check_nothing_lost

pytestmark = pytest.mark.slow


def start(checkout: ClusterCheckout, output: Path) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "rankfall.cli", "run", "--profile", PROFILE, "--", *HURRY]
    environment = checkout.environment() | {"PYTHONPATH": str(checkout.folder / "src")}
    with output.open("wb") as file:
        return subprocess.Popen(
            words, cwd=checkout.folder, env=environment, stdout=file, stderr=file, start_new_session=True
        )


def kill(run: "subprocess.Popen[bytes]") -> None:
    if run.poll() is None:
        os.killpg(run.pid, signal.SIGKILL)


def test_a_run_is_shown_stopped_and_ended(
    cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    run = start(checkout, output)
    try:
        checkout.wait_until_in_the_middle()
        os.kill(run.pid, signal.SIGINT)
        assert run.wait(120) == 130
    finally:
        kill(run)
    assert "==> stopped after" in output.read_text()
    assert f"==> to go on: make run PROFILE={PROFILE} ARGS=" in output.read_text()
    assert not list((checkout.folder / ".snakemake" / "locks").glob("*"))
    wait_for("the job to be gone", lambda: not cluster.running("train") and not checkout.pids(), 60)
    kept = checkout.finished()
    assert kept
    run = start(checkout, output)
    try:
        assert run.wait(280) == 0, output.read_text()
    finally:
        kill(run)
    lines = output.read_text().splitlines()
    assert any("] train sorting 0: " in line for line in lines) and any(line.startswith("==> done: ") for line in lines)
    assert "resuming a stack of 1 at step" in checkout.log()
    check_nothing_lost(checkout, kept, undisturbed)
