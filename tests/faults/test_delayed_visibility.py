"""Tests two nodes on a shared file system that shows each the other's files late, as two folders and a copier that waits.

Both nodes train the same shard at once. They compute some cells twice, before they see each other's results, with the same outcome under
the same name. Once everything is visible, there is one store without duplicates.
"""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml
from checkout import CONFIG, changed
from cluster import wait_for

from rankfall.report import tables
from rankfall.report.runs import differences
from rankfall.run.store import Store

DELAY = 2.0  # seconds
CELLS = 4
SLOW = changed(
    CONFIG,
    trainings={"slow": {"lr": 1.0e-3, "epochs": 250, "batch": 30}},
    grid=[{"task": "sorting", "architecture": "soft", "training": "slow", "seed": list(range(CELLS))}],
    measures={},
    figures={},
    compute={"engine": "plain", "threads": 1, "stack": 1, "checkpoint_seconds": 0.5},
)


def copy_late(first: Path, second: Path, stop: Event) -> None:
    """Copy files that are old enough in both directions. Each appears whole, as after a rename."""
    while not stop.is_set():
        for source, target in ((first, second), (second, first)):
            for path in [*source.glob("store/stacks/**/*.safetensors"), *source.glob("store/data/**/*.*")]:
                copy = target / path.relative_to(source)
                if not copy.exists() and time.time() - path.stat().st_mtime > DELAY and not path.name.startswith("."):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    fresh = copy.with_name(f".late.{copy.name}")
                    shutil.copy2(path, fresh)
                    os.replace(fresh, copy)
        stop.wait(0.1)


def train(config: Path, results: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "rankfall.cli", "train", "--config", str(config), "--results", str(results)]
    command += ["--task", "sorting", "--shard", "0", "--out", str(results / "cells.parquet")]
    command += ["--training-out", str(results / "training.parquet")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def stacks(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("store/stacks/**/[!.]*.safetensors")}


@pytest.mark.slow
def test_two_nodes_that_see_each_other_late(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(SLOW))
    folders = [tmp_path / name for name in ("one", "two")]
    stop = Event()
    copier = Thread(target=copy_late, args=(*folders, stop))
    copier.start()
    try:
        first = train(config, folders[0])
        time.sleep(3)
        second = train(config, folders[1])
        for process in (first, second):
            said, _ = process.communicate(timeout=300)
            assert process.returncode == 0, said
        wait_for("each to see all of the other", lambda: stacks(folders[0]) == stacks(folders[1]))
    finally:
        stop.set()
        copier.join()
    alone = tmp_path / "alone"
    assert train(config, alone).wait(300) == 0
    for folder in folders:
        for name in ("cells", "training"):
            mine, other = (tables.read(place / f"{name}.parquet", name) for place in (folder, alone))
            assert not differences(mine, other)
        held = Counter(record.key for record in Store(folder / "store").records())
        assert len(held) == CELLS and set(held.values()) == {1}, "a cell is there twice"
        assert not list(folder.glob("store/damaged/*"))
    said, _ = train(config, folders[1]).communicate(timeout=300)
    assert f"{CELLS} cells: {CELLS} in store, 0 to train" in said
