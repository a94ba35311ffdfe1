"""Grid Engine through Snakemake's generic plugin: jobs that are cancelled or killed are resumed, and the tables are those of a run that
nothing happened to, bit by bit."""

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import Checkout
from cluster import Unavailable, or_skip, run_command, wait_for
from gridengine import GridEngine, grid_engine
from runs import CELLS, SLOW, ClusterCheckout, check_nothing_lost

pytestmark = pytest.mark.slow
PLUGIN = "snakemake_executor_plugin_cluster_generic"
HURRY = ("--latency-wait", "15", "--seconds-between-status-checks", "1")


class GridEngineCheckout(ClusterCheckout):
    """A checkout whose jobs go to Grid Engine."""

    def command(self, *arguments: str) -> list[str]:
        site = ("--workflow-profile", "workflow/profiles/gridengine", *HURRY)
        return [sys.executable, "-m", "snakemake", *site, *arguments]


@pytest.fixture(scope="session")  # before `undisturbed`, so that a skip costs nothing
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridEngine]:
    with or_skip("Grid Engine"):
        if importlib.util.find_spec(PLUGIN) is None:
            raise Unavailable("pip install snakemake-executor-plugin-cluster-generic")
        with grid_engine(tmp_path_factory.mktemp("gridengine")) as made:
            yield made


@pytest.mark.parametrize("how", ["cancelled", "killed"])
def test_a_job_that_ends_early_is_resumed(engine: GridEngine, undisturbed: Checkout, tmp_path: Path, how: str) -> None:
    checkout = GridEngineCheckout.make(tmp_path / "checkout", SLOW)
    try:
        process = checkout.start()
        checkout.wait_until_in_the_middle()
        finished = checkout.finished()
        (job,), (pid,) = engine.running("train"), checkout.pids()
        if how == "cancelled":
            run_command("qdel", job)
        else:
            os.killpg(os.getpgid(pid), signal.SIGKILL)  # with the script around it, which then says nothing
        checkout.go_on()
        wait_for("the end of the job", lambda: not checkout.pids())
        assert ("checkpointed on SIGTERM" in checkout.log()) is (how == "cancelled")
        done = checkout.finish(process)
        assert done.code == 0, done.output
        assert done.trained == CELLS - len(finished)
        assert "resuming a stack of 1 at step" in checkout.log()
        check_nothing_lost(checkout, finished, undisturbed)
        assert not run_command("qstat").strip()
    finally:
        checkout.abandon()
        engine.clear()
