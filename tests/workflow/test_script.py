"""Guards other ways to run a configuration: as a module of another workflow, in the layout that Snakemake's catalogue asks for; and by
`rankfall plan --script`, where bash alone makes what Snakemake makes, in an order in which nothing is missing; and what a job must see."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import CONFIG, ROOT, Checkout, changed

from rankfall.report import tables
from rankfall.report.runs import differences

pytestmark = pytest.mark.slow

SMOKE = "workflow/presets/smoke.yaml"
SNAKEFILE = f"""
configfile: "config/config.yaml"


module rankfall:
    snakefile:
        {str(ROOT / "workflow" / "Snakefile")!r}
    config:
        config


use rule * from rankfall


onstart:
    open("theirs.txt", "w").write("began")
"""


def run(folder: Path, command: list[str], **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=folder, env=Checkout(folder).environment() | environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip


def run_theirs(folder: Path) -> str:
    done = run(folder, [sys.executable, "-m", "snakemake", "--cores", "2"])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def run_script(checkout: Checkout, config: str, changes: dict[str, object] | None = None) -> tuple[int, str]:
    """Write the script of a configuration, change the configuration, and run the script."""
    command = [sys.executable, "-m", "rankfall.cli", "plan", "--config", config, "--script"]
    done = run(checkout.folder, command, PYTHONPATH="src")
    assert done.returncode == 0, done.stderr
    (checkout.folder / "run.sh").write_text(done.stdout)
    if changes:
        checkout.configure(changed(CONFIG, **changes))
    done = run(checkout.folder, ["bash", "run.sh"])
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the smoke preset by another workflow in a folder of its own."""
    folder = tmp_path_factory.mktemp("module") / "theirs"
    for part in ("workflow", "config"):
        (folder / part).mkdir(parents=True)
    (folder / "workflow" / "Snakefile").write_text(SNAKEFILE)
    shutil.copy(ROOT / SMOKE, folder / "config" / "config.yaml")
    run_theirs(folder)
    return folder


def test_another_workflow_runs_it_as_a_module(theirs: Path) -> None:
    assert (theirs / "theirs.txt").read_text() == "began"  # their own handler, not ours
    assert (theirs / "results/smoke/figures/paths.png").is_file()
    (plan,) = (theirs / "results/smoke/plan").glob("*/config.json")
    assert json.loads(plan.read_text())["name"] == "smoke"
    assert "Nothing to be done" in run_theirs(theirs)


def test_bash_makes_the_tables_that_snakemake_makes(theirs: Path, tmp_path: Path) -> None:
    other = Checkout.make(tmp_path / "bash")
    code, output = run_script(other, SMOKE)
    assert code == 0, output
    first, second = (folder / "results" / "smoke" for folder in (theirs, other.folder))
    for pattern in ("tables/*.parquet", "figures/*.*"):
        names = sorted(path.relative_to(first) for path in first.glob(pattern))
        assert names == sorted(path.relative_to(second) for path in second.glob(pattern)) != []
        for name in names if pattern.startswith("tables") else ():
            assert not differences(tables.read(first / name), tables.read(second / name))
    again = other.run("--configfile", SMOKE)
    assert "Nothing to be done" in again.output, "Snakemake finds all that the script made right"


def test_an_edit_after_the_script_was_written_stops_it(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout")
    tasks = {"sorting": CONFIG["tasks"]["sorting"] | {"train": 90}}
    code, output = run_script(checkout, "config.yaml", {"tasks": tasks})
    assert code != 0 and "changed since this run was planned" in output
    assert not (checkout.results / "tables").exists()


def run_job(checkout: Checkout, key: str, folder: Path, files: list[Path], *words: str) -> str:
    """Run a job in a folder that has these files of the checkout alone. Return its output."""
    for file in files:
        copy = folder / file.relative_to(checkout.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
    (plan,) = (folder / "results" / "plan").iterdir()
    digests = {job[0]: job[1] for job in json.loads((plan / "jobs.json").read_text())["jobs"]}
    command = [sys.executable, "-m", "rankfall.cli", key.split("/")[0], "--config", str(plan / "config.json")]
    command += ["--results", "results", "--expect", digests[key], "--task", "sorting", "--out", "out.parquet", *words]
    done = run(folder, command, PYTHONPATH=f"{checkout.folder}/src:{checkout.folder}/engine/src")
    assert done.returncode == 0 and "planning the whole grid" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_a_job_needs_its_part_of_the_plan_and_the_networks_of_its_shard(base: Checkout, tmp_path: Path) -> None:
    """As docs/cluster.md has it: its table is that of the run. Without the networks it trains them again."""
    (plan,) = (base.results / "plan").iterdir()
    common = [plan / name for name in ("config.json", "jobs.json", "plan.pickle")]
    shard, zero = plan / "shards" / "sorting" / "0.pickle", ("--shard", "0")
    for number, (key, table, files, words) in enumerate(
        [
            ("data/sorting", "datasets", [plan / "data" / "sorting.pickle"], ()),
            ("train/sorting/0", "cells", [shard], (*zero, "--training-out", "training.parquet")),
            ("measure/paths/sorting/0", "paths", [shard, *base.stacks()], (*zero, "--measure", "paths")),
            ("measure/paths/sorting/0", "paths", [shard], (*zero, "--measure", "paths")),
        ]
    ):
        folder = tmp_path / str(number)
        output = run_job(base, key, folder, common + files, *words)
        assert not differences(tables.read(folder / "out.parquet", table), base.table(table))
        assert ("4 cells: 0 in store, 4 to train" in output) is (number in (1, 3)), output
    assert not differences(tables.read(tmp_path / "1" / "training.parquet", "training"), base.table("training"))
