"""A whole run on the cluster: the same numbers as on one machine, and requests that arrive."""

import os
import re
import signal
from pathlib import Path

import pytest
import yaml
from checkout import CONFIG, ROOT, Checkout, changed
from cluster import Cluster, wait_for
from runs import UNASKED, ClusterCheckout

from rankfall.report.runs import differences
from rankfall.run.plan import make_plan
from rankfall.run.screen.child import cancel_left, name_in

pytestmark = pytest.mark.slow


def test_smoke_preset_gives_the_tables_of_a_local_run(checkout: ClusterCheckout, tmp_path: Path) -> None:
    """On one processor, bit by bit; and a second run does nothing."""
    smoke = yaml.safe_load((ROOT / "workflow" / "presets" / "smoke.yaml").read_text()) | {"results": "results"}
    checkout.configure(smoke)
    done = checkout.run()
    assert done.jobs["train"] and done.jobs["measure"]
    local = Checkout.make(tmp_path / "local", smoke)
    local.run()
    names = sorted(path.stem for path in (local.results / "tables").glob("*.parquet"))
    assert {"cells", "training", "paths"} <= set(names)
    for name in names:
        assert not differences(checkout.table(name), local.table(name))
    assert not checkout.run().jobs


def test_gpu_is_asked_for_by_training_alone_and_reaches_it(cluster: Cluster, checkout: ClusterCheckout) -> None:
    checkout.configure(changed(CONFIG, trainings={"short": {"lr": 1.0e-3, "epochs": 300, "batch": 30}}, figures={}))
    process = checkout.start("--set-resources", "train:gpu=1", "train:gpu_model=fake", "train:slurm_partition=gpu")
    wait_for("the training process", checkout.pids, 120)
    (pid,) = checkout.hold()
    (job,) = cluster.running("train")
    details = cluster.details(job)
    assert "gres:gpu:fake:1" in details
    assert "Partition=gpu" in details
    assert re.search(r"GRES=gpu(:fake)?:1\(IDX:[01]\)", details)
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert any(line in (b"CUDA_VISIBLE_DEVICES=0", b"CUDA_VISIBLE_DEVICES=1") for line in environment)
    checkout.go_on()
    measuring: list[str] = []
    wait_for("the measuring job", lambda: measuring.extend(cluster.running("measure")) or measuring, 120)
    details = cluster.details(measuring[0])
    assert "gres:" not in details and "GRES=gpu" not in details and "Partition=main" in details
    assert checkout.finish(process).code == 0


@pytest.mark.parametrize(
    ("device", "gres", "requested"), [("cuda", "", True), ("cuda", "gpu:fake:1", True), ("cpu", "", False)]
)
def test_the_configuration_decides_whether_a_gpu_is_requested(
    cluster: Cluster, checkout: ClusterCheckout, device: str, gres: str, requested: bool
) -> None:
    """On a node that takes no jobs: a training job on `cuda` would find no GPU here."""
    checkout.configure(changed(CONFIG, compute={"device": device}))
    cluster.node("DRAIN")
    try:
        checkout.start(*(("--set-resources", f"train:gres={gres}") if gres else ()))
        wait_for("the submission", lambda: cluster.jobs("PENDING"), 120)
        assert all((f"gres:{gres or 'gpu:1'}" in cluster.details(job)) is requested for job in cluster.jobs("PENDING"))
        checkout.abandon()
        cluster.clear()
    finally:
        cluster.node("RESUME")


MANY = changed(
    CONFIG,
    grid=[{"task": "sorting", "architecture": ["soft", "far"], "training": "short", "depth": "1..80", "seed": 0}],
    measures={},
    figures={},
    compute={"engine": "plain", "threads": 1, "shard_minutes": 0.0001},
)


def count_submissions(checkout: ClusterCheckout) -> int:
    """Return the number of arrays that Snakemake says it has submitted."""
    logs = (checkout.folder / ".snakemake" / "log").glob("*.log")
    return sum(path.read_text().count("Submitted array job") for path in logs)


def test_a_hundred_jobs_in_one_submission(cluster: Cluster, checkout: ClusterCheckout) -> None:
    """On a node that takes no jobs, so that they can be counted; Ctrl-C takes all of them out of the queue again."""
    checkout.configure(MANY)
    jobs = len(make_plan(MANY).shards)
    assert jobs >= 100
    cluster.node("DRAIN")
    try:
        process = checkout.start("--slurm-array-jobs", "train", "--jobs", "200", "--quiet", "rules", *UNASKED)
        wait_for("the submission", lambda: len(cluster.jobs("PENDING")) == jobs, 120)
        waiting = cluster.jobs("PENDING")
        assert len({job.split("_")[0] for job in waiting}) <= 2, "Snakemake hands over a hundred jobs a second"
        wait_for("Snakemake to hear of both arrays", lambda: count_submissions(checkout) == 2)
        os.kill(process.pid, signal.SIGINT)
        done = checkout.finish(process)
        name = name_in(done.output)
        assert done.code != 0 and name
        cancel_left(name)  # as `rankfall run` does, since Snakemake forgets those that it is just asking about
        wait_for("an empty queue", lambda: not cluster.jobs("PENDING"))
    finally:
        cluster.node("RESUME")
