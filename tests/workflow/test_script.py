"""Guards `rankfall plan --script`: bash alone makes what Snakemake makes, in an order in which nothing is missing."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import CONFIG, ROOT, Checkout, changed

from rankfall.report import tables
from rankfall.report.compare import differences
from rankfall.run.config.types import read
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.run_plan import RunPlan
from rankfall.run.snakemake.script import command_of, script

SMOKE = "workflow/presets/smoke.yaml"
PRESETS = [ROOT / "config.yaml", *sorted((ROOT / "workflow" / "presets").glob("*.yaml"))]
QUICK = {"smoke", "config"}


def plan_run(path: Path) -> RunPlan:
    raw = read(path)
    return RunPlan.make(make_plan(raw), raw)


def made_by(line: str) -> tuple[str, dict[str, str]]:
    """The verb of a job, and its options."""
    job, verb, _, _, *words = shlex.split(line)
    assert job == "job"
    return verb, dict(word.removeprefix("--").split("=", 1) for word in words)


@pytest.mark.parametrize(
    "path", [pytest.param(one, id=one.stem, marks=[pytest.mark.long] * (one.stem not in QUICK)) for one in PRESETS]
)
def test_all_is_made_and_each_file_after_those_it_is_made_from(path: Path) -> None:
    run = plan_run(path)
    there: set[str] = set()
    for job in run.jobs.values():
        verb, options = made_by(command_of(run, job))
        assert verb == job.kind and set(run.paths(job.inputs)) <= there, job.key
        there |= {options[name] for name in ("out", "training-out", "caption") if name in options}
        if verb == "figure":
            there |= set(run.paths(job.files))
    assert set(run.paths(run.final.values())) <= there


def test_the_script_has_the_commands_of_all_rules() -> None:
    texts = [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    ruled = set(re.findall(r"python -m rankfall\.cli (\w+)", "\n".join(path.read_text() for path in texts)))
    run = plan_run(ROOT / "config.yaml")
    assert {made_by(command_of(run, job))[0] for job in run.jobs.values()} | {"publish"} == ruled
    assert "rankfall.cli publish" in script(run, ROOT / "config.yaml")


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
