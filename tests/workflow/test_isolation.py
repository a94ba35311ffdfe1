"""What one run does to another, and what a run makes of odd paths and files: real Snakemake on throw-away copies.

Two runs share a checkout; clocks are ahead; what Snakemake remembers is lost; folders have names that a shell would execute.
"""

import os
import shutil
import time
from pathlib import Path

import pytest
from checkout import CONFIG, Checkout, changed

from rankfall.report.compare import differences

pytestmark = pytest.mark.slow  # each starts Snakemake, most of them several times

HOUR = 3600
OTHER = changed(CONFIG, trainings={"short": {"lr": 3.0e-3, "epochs": 2, "batch": 30}})


def rates(checkout: Checkout) -> set[float]:
    return {row["lr"] for name in ("cells", "paths") for row in checkout.table(name).to_pylist()}


def refusal(checkout: Checkout, *arguments: str) -> str:
    """The one line that a run is refused with, before anything runs."""
    done = checkout.finish(checkout.start("--dry-run", *arguments))
    assert done.code != 0
    assert "Traceback" not in done.output and "File " not in done.output, done.output
    (line,) = [line for line in done.output.splitlines() if line.startswith("error: ")]
    return line


def test_a_second_run_changes_nothing_of_a_live_one(tmp_path: Path) -> None:
    """The second has another configuration: once it only looks, once it is refused by the lock. Then outputs are dated an hour
    ahead, the configuration changes, and what Snakemake remembers is lost.
    """
    slow = changed(CONFIG, trainings={"short": {"lr": 1.0e-3, "epochs": 60, "batch": 30}})
    checkout = Checkout.make(tmp_path / "checkout", slow)
    live = checkout.start()
    limit = time.monotonic() + 120
    while not (plans := list((checkout.results / "plan").glob("*/jobs.json"))):
        assert live.poll() is None and time.monotonic() < limit
        time.sleep(0.05)
    (plan,) = plans
    before = plan.read_bytes(), plan.stat().st_mtime_ns
    checkout.configure(OTHER)
    assert checkout.finish(checkout.start_beside("--dry-run")).code == 0
    refused = checkout.finish(checkout.start_beside())
    assert refused.code != 0 and "LockException" in refused.output
    assert (plan.read_bytes(), plan.stat().st_mtime_ns) == before
    assert plan.parent in (checkout.results / "plan").iterdir(), "the refused run's own plan lies beside it"
    first = checkout.finish(live)
    assert first.code == 0, first.output
    assert rates(checkout) == {1.0e-3}

    for path in checkout.results.rglob("*"):
        os.utime(path, (time.time() + HOUR,) * 2)
    shutil.rmtree(checkout.folder / ".snakemake")
    assert checkout.run().trained == 4  # from data that are dated ahead
    assert rates(checkout) == {3.0e-3}
    assert "Nothing to be done" in checkout.run().output


def test_folders_that_a_shell_would_execute(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / """it's a "$(touch pwned)" & b;""")
    checkout.configure(changed(CONFIG, results="results/x y$(touch pwned)'\"&"))
    checkout.run()
    (results,) = (path.parent for path in checkout.results.rglob("tables"))
    assert len(list((results / "tables").iterdir())) == 4
    assert not list(tmp_path.rglob("pwned"))
    again = checkout.run()
    assert "Nothing to be done" in again.output


def test_outputs_of_another_configuration_are_no_matter(tmp_path: Path) -> None:
    """Copied over, newer than all else, and unknown to what Snakemake remembers."""
    one = Checkout.make(tmp_path / "one")
    one.run()
    tables = {name: one.table(name) for name in ("cells", "training", "paths")}
    caption = (one.results / "figures" / "paths.rst").read_text()
    two = Checkout.make(tmp_path / "two", OTHER)
    two.run()
    for part in ("work", "tables", "figures"):
        shutil.copytree(two.results / part, one.results / part, dirs_exist_ok=True)
    done = one.run()
    assert not done.jobs
    for name, before in tables.items():
        assert not differences(one.table(name), before)
    assert (one.results / "figures" / "paths.rst").read_text() == caption
    assert "Nothing to be done" in one.run().output
    shutil.rmtree(one.results / "store")
    assert "Nothing to be done" in one.run().output, "the tables have all that is asked of the networks"


@pytest.mark.parametrize(("name", "sign"), [("a:b", ":"), ("{a}", "{")])
def test_a_checkout_that_jobs_would_not_find_is_refused(name: str, sign: str, tmp_path: Path) -> None:
    assert f"jobs cannot run from a folder with {sign!r} in its name" in refusal(Checkout.make(tmp_path / name))


def test_a_job_of_a_cluster_reads_what_was_planned(tmp_path: Path) -> None:
    """And not what config.yaml says by the time that it starts: it parses the workflow again. With an `sbatch` that only notes
    what it is asked for.
    """
    checkout = Checkout.make(tmp_path / "checkout")
    (tmp_path / "bin").mkdir()
    for command in ("sbatch", "sacct", "squeue", "scancel", "sinfo", "scontrol"):
        path = tmp_path / "bin" / command
        path.write_text(f'#!/bin/sh\necho "$@" RANKFALL_PLAN=$RANKFALL_PLAN >> {tmp_path}/{command}\nexit 1\n')
        path.chmod(0o755)
    cluster = ["--executor", "slurm", "--jobs", "1", "--retries", "0"]
    cluster += ["--default-resources", "slurm_partition=main"]
    done = checkout.finish(checkout.start(*cluster, path=f"{tmp_path}/bin:{os.environ['PATH']}"))
    assert done.code != 0 and "train" not in done.jobs, done.output
    (plan,) = (checkout.results / "plan").glob("*/config.json")
    assert (tmp_path / "sbatch").exists(), done.output
    said = (tmp_path / "sbatch").read_text()
    assert "--export=ALL" in said and f"RANKFALL_PLAN={plan.parent.relative_to(checkout.folder)}" in said


def test_one_reader_of_configurations(tmp_path: Path) -> None:
    """Twice the same key is refused, a single value can be overridden, and a file that is missing is one line."""
    checkout = Checkout.make(tmp_path / "checkout")
    path = checkout.folder / "config.yaml"
    text = path.read_text()
    path.write_text(text + "name: again\n")
    assert "the key 'name' is there twice" in refusal(checkout)
    path.write_text(text)
    assert "elsewhere/work/table/cells/" in checkout.run("--dry-run", "--config", "results=elsewhere").output
    assert "results: '~/x' is not expanded" in refusal(checkout, "--config", "results=~/x")
    path.unlink()
    assert "config.yaml: cannot be read" in refusal(checkout)
