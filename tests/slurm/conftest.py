"""One cluster for the whole session, and one undisturbed run that all others are compared with."""

from collections.abc import Iterator
from pathlib import Path

import cluster as slurm
import pytest
from checkout import Checkout
from runs import SLOW, ClusterCheckout


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Cluster]:
    with slurm.or_skip("SLURM"), slurm.cluster(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Run on this machine, without disturbance."""
    made = Checkout.make(tmp_path_factory.mktemp("undisturbed") / "checkout", SLOW)
    made.run()
    return made


@pytest.fixture
def checkout(cluster: slurm.Cluster, undisturbed: Checkout, tmp_path: Path) -> Iterator[ClusterCheckout]:
    """Make a checkout whose next run is on the cluster; afterwards nothing of it runs any more, whatever became of the test."""
    made = ClusterCheckout.make(tmp_path / "checkout", SLOW)
    yield made
    made.abandon()
    cluster.clear()
