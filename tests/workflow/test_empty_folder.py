"""Guards what a job must see: each runs in a folder that has these files alone, and its table is compared with that of the run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import Checkout

from rankfall.report import tables
from rankfall.report.runs import differences

pytestmark = pytest.mark.slow


def run_job(checkout: Checkout, key: str, folder: Path, seen: list[Path], *arguments: str) -> str:
    """Run the command of a job where only these files of the checkout are, and return what it prints."""
    for file in seen:
        copy = folder / file.relative_to(checkout.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
    (plan,) = (folder / "results" / "plan").iterdir()
    digests = {job[0]: job[1] for job in json.loads((plan / "jobs.json").read_text())["jobs"]}
    config = str(plan.relative_to(folder) / "config.json")
    command = [sys.executable, "-m", "rankfall.cli", key.split("/")[0], "--config", config, "--results", "results"]
    sources = [checkout.folder / "src", checkout.folder / "engine" / "src"]
    done = subprocess.run(
        [*command, "--expect", digests[key], "--task", "sorting", "--out", "out.parquet", *arguments],
        cwd=folder,
        env=checkout.environment() | {"PYTHONPATH": ":".join(map(str, sources))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "planning the whole grid" not in done.stderr
    return done.stdout + done.stderr


def test_a_job_needs_its_part_of_the_plan_and_the_networks_of_its_shard(base: Checkout, tmp_path: Path) -> None:
    checkout = base
    (plan,) = (checkout.results / "plan").iterdir()
    every = [plan / name for name in ("config.json", "jobs.json", "plan.pickle")]
    shard = plan / "shards" / "sorting" / "0.pickle"
    data = tmp_path / "data"
    run_job(checkout, "data/sorting", data, [*every, plan / "data" / "sorting.pickle"])
    assert not differences(tables.read(data / "out.parquet", "datasets"), checkout.table("datasets"))

    train = tmp_path / "train"
    said = run_job(
        checkout, "train/sorting/0", train, [*every, shard], "--shard", "0", "--training-out", "epochs.parquet"
    )
    assert "4 cells: 0 in store, 4 to train" in said
    assert not differences(tables.read(train / "out.parquet", "cells"), checkout.table("cells"))
    assert not differences(tables.read(train / "epochs.parquet", "training"), checkout.table("training"))

    for name, networks in (("measure", checkout.stacks()), ("again", [])):
        folder = tmp_path / name
        seen = [*every, shard, *networks]
        said = run_job(checkout, "measure/paths/sorting/0", folder, seen, "--shard", "0", "--measure", "paths")
        assert not differences(tables.read(folder / "out.parquet", "paths"), checkout.table("paths"))
        assert ("to train" in said) is (not networks), said
