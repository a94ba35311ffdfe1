"""Guards `rankfall plan --script`: bash alone makes what Snakemake makes, in an order in which nothing is missing."""

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import CONFIG, Checkout, changed

from rankfall.report import tables
from rankfall.report.runs import differences

SMOKE = "workflow/presets/smoke.yaml"


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


@pytest.mark.slow
def test_bash_makes_the_tables_that_snakemake_makes(tmp_path: Path) -> None:
    one, other = Checkout.make(tmp_path / "snakemake"), Checkout.make(tmp_path / "bash")
    one.run("--configfile", SMOKE)
    write_script(other, SMOKE)
    done = bash(other)
    assert done.returncode == 0, done.stdout + done.stderr
    results = Path("results") / "smoke"
    for folder, pattern in (("tables", "*.parquet"), ("figures", "*.*")):
        first, second = (sorted((each.folder / results / folder).glob(pattern)) for each in (one, other))
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
