"""Tests that a training job killed with SIGKILL at random moments resumes and ends with the same bits as an undisturbed one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers import config
from training_jobs import are_equal

from rankfall.run.jobs.engine import stack_id
from rankfall.run.plan import make_plan
from rankfall.run.store import Store


def start(folder: Path, results: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rankfall.cli", "train", "--config", str(folder / "config.json")]
    command += ["--results", str(results), "--task", "sorting", "--shard", "0", "--out", str(results / "cells.parquet")]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def modification_times(folder: Path) -> list[int]:
    times = []
    for path in folder.glob("*.safetensors"):
        with suppress(FileNotFoundError):
            times.append(path.stat().st_mtime_ns)
    return times


@pytest.mark.slow
def test_sigkill_at_five_random_steps(tmp_path: Path) -> None:
    raw = config(
        task={"train": 300},
        architecture={"mlp": "gelu"},
        training={"epochs": 30, "dropout": 0.1, "lr": 3e-3},
        grid={"seed": "0..2"},
        compute={"engine": "plain", "checkpoint_seconds": 0.05},
    )
    (tmp_path / "config.json").write_text(json.dumps(raw))
    plan = make_plan(raw)
    keys = [cell.key for cell in plan.cells]
    assert start(tmp_path, tmp_path / "calm").wait(120) == 0

    luck, disturbed, steps = random.Random(20), tmp_path / "killed", list[int]()
    checkpoints = disturbed / "store" / "checkpoints"
    while len(steps) < 5:
        running = start(tmp_path, disturbed)
        before = modification_times(checkpoints)
        while running.poll() is None and modification_times(checkpoints) == before:  # until it has written a checkpoint
            time.sleep(0.01)
        time.sleep(luck.uniform(0.0, 0.1))
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert running.returncode == -signal.SIGKILL, "finished before it could be killed: train longer"
        checkpoint = Store(disturbed / "store").load_checkpoint(stack_id(keys), keys)
        assert checkpoint is not None
        steps.append(checkpoint[1]["step"])
        assert not (disturbed / "cells.parquet").exists()
    assert steps == sorted(set(steps)), "every run began where the last had got to"
    last = start(tmp_path, disturbed)
    _, notes = last.communicate(timeout=120)
    assert last.returncode == 0
    assert f"resuming a stack of 3 at step {steps[-1]}" in notes
    assert are_equal(plan, Store(disturbed / "store"), Store(tmp_path / "calm" / "store"))
