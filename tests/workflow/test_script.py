"""Guards other ways to run a configuration: as a module of another workflow, in the layout that Snakemake's catalogue asks for; and by
`rankfall plan --script`, where bash alone makes what Snakemake makes, in an order in which nothing is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import CONFIG, ROOT, Checkout, changed

from rankfall.report import tables
from rankfall.report.runs import differences

SMOKE = "workflow/presets/smoke.yaml"


USER = """
configfile: "config/config.yaml"


module rankfall:
    snakefile:
        {snakefile!r}
    config:
        config


use rule * from rankfall
"""


def user(folder: Path) -> Path:
    """Another workflow in a folder of its own, with a small configuration."""
    for part in ("workflow", "config"):
        (folder / part).mkdir(parents=True)
    text = USER.format(snakefile=str(ROOT / "workflow" / "Snakefile"))
    (folder / "workflow" / "Snakefile").write_text(text)
    (folder / "config" / "config.yaml").write_text((ROOT / "workflow" / "presets" / "smoke.yaml").read_text())
    return folder


def snakemake(folder: Path) -> str:
    left = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SNAKEMAKE_PROFILE")}
    command = [sys.executable, "-m", "snakemake", "--cores", "2"]
    done = subprocess.run(command, cwd=folder, env=left | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def write_script(checkout: Checkout, config: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rankfall.cli", "plan", "--config", config, "--script"],
        cwd=checkout.folder,
        env=checkout.environment() | {"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=True,
    )
    (checkout.folder / "run.sh").write_text(done.stdout)


def bash(checkout: Checkout) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "run.sh"],
        cwd=checkout.folder,
        env=checkout.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke preset, run by another workflow."""
    folder = user(tmp_path_factory.mktemp("module") / "theirs")
    (folder / "workflow" / "Snakefile").open("a").write('\n\nonstart:\n    open("theirs.txt", "w").write("began")\n')
    snakemake(folder)
    return folder


@pytest.mark.slow
def test_another_workflow_runs_it_as_a_module(theirs: Path) -> None:
    assert (theirs / "theirs.txt").read_text() == "began"  # their own handler, not ours
    assert (theirs / "results/smoke/figures/paths.png").is_file()
    (plan,) = (theirs / "results/smoke/plan").glob("*/config.json")
    assert json.loads(plan.read_text())["name"] == "smoke"
    assert "Nothing to be done" in snakemake(theirs)


@pytest.mark.slow
def test_bash_makes_the_tables_that_snakemake_makes(theirs: Path, tmp_path: Path) -> None:
    other = Checkout.make(tmp_path / "bash")
    write_script(other, SMOKE)
    done = bash(other)
    assert done.returncode == 0, done.stdout + done.stderr
    results = Path("results") / "smoke"
    for folder, pattern in (("tables", "*.parquet"), ("figures", "*.*")):
        first, second = (sorted((each / results / folder).glob(pattern)) for each in (theirs, other.folder))
        assert [path.name for path in first] == [path.name for path in second] != []
        for path, copy in zip(first, second):
            if folder == "tables":
                assert differences(tables.read(path), tables.read(copy)) == []
    again = other.run("--configfile", SMOKE)
    assert "Nothing to be done" in again.output, "Snakemake finds all that the script made right"


@pytest.mark.slow
def test_an_edit_after_the_script_was_written_stops_it(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout")
    write_script(checkout, "config.yaml")
    checkout.configure(changed(CONFIG, tasks={"sorting": {"train": 90, "test": 20, "length": 5, "symbols": 6}}))
    done = bash(checkout)
    assert done.returncode != 0
    assert "changed since this run was planned" in done.stderr
    assert not (checkout.results / "tables").exists()
