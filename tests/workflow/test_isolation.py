"""What one run does to another: real Snakemake on throw-away copies. Two runs share a checkout; clocks are ahead; records are lost."""

import os
import shutil
import time
from pathlib import Path

import pytest
from checkout import CONFIG, Checkout, changed

pytestmark = pytest.mark.slow  # each starts Snakemake, most of them several times

OTHER = changed(CONFIG, trainings={"short": {"lr": 3.0e-3, "epochs": 2, "batch": 30}})


def rates(checkout: Checkout) -> set[float]:
    return {row["lr"] for name in ("cells", "paths") for row in checkout.table(name).to_pylist()}


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
        os.utime(path, (time.time() + 3600,) * 2)
    shutil.rmtree(checkout.folder / ".snakemake")
    assert checkout.run().trained == 4  # from data that are dated ahead
    assert rates(checkout) == {3.0e-3}
    assert "Nothing to be done" in checkout.run().output
