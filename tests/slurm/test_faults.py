"""What goes wrong on a cluster, done to a real one: each time what was finished stays, the rest goes on, and the tables are
those of a run that nothing happened to, bit by bit."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from checkout import Checkout, Run, changed
from cluster import CPUS, Cluster, run_command, wait_for
from runs import CELLS, SLOW, ClusterCheckout, check_nothing_lost

pytestmark = pytest.mark.slow


def finish(checkout: ClusterCheckout, process: "subprocess.Popen[str]") -> Run:
    done = checkout.finish(process)
    assert done.code == 0, done.output
    return done


def only(items: list[Any]) -> Any:
    (item,) = items
    return item


def state(cluster: Cluster, job: str) -> str:
    return cluster.jobs().get(job, "gone")


def resumed(checkout: ClusterCheckout) -> bool:
    """Return whether the last attempt began in the middle of a cell."""
    return "resuming a stack of 1 at step" in checkout.log()


def test_killed_without_warning(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    """The next attempt computes what was planned, and not what config.yaml says by then."""
    process = checkout.start()
    checkout.wait_until_in_the_middle()
    checkout.configure(changed(SLOW, trainings={"slow": {"lr": 3.0e-3, "epochs": 300, "batch": 30}}))
    finished, job = checkout.finished(), only(cluster.running("train"))
    os.kill(checkout.pids()[0], signal.SIGKILL)
    finish(checkout, process)
    assert resumed(checkout)
    assert state(cluster, job) == "FAILED"
    check_nothing_lost(checkout, finished, undisturbed)


def warned(pid: int) -> bool:
    """Return whether a stopped process has a SIGTERM waiting for it, or was set going by one."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:
        return True
    return bool(int(status["ShdPnd"], 16) >> (signal.SIGTERM - 1) & 1) or "T" not in status["State"].split()[0]


def test_warned_before_the_time_limit(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    """The profile asks for a signal ahead of the limit; a checkpoint follows within five seconds. SLURM looks at limits twice a
    minute, and the training process stands still until then. What is around it hears the signal as well, and
    must not end the job before the checkpoint is written."""
    process = checkout.start()
    checkout.wait_until_in_the_middle()
    finished, job, pid = checkout.finished(), only(cluster.running("train")), only(checkout.pids())
    assert not warned(pid)
    run_command("scontrol", "update", f"JobId={job}", "TimeLimit=2")
    wait_for("the warning", lambda: warned(pid), 90, 0.02)
    began = time.monotonic()
    checkout.go_on()
    wait_for("a checkpoint", lambda: "checkpointed on SIGTERM" in checkout.log(), every=0.02)
    assert time.monotonic() - began < 5
    done = finish(checkout, process)
    assert done.trained == CELLS - len(finished)
    assert resumed(checkout)
    assert state(cluster, job) == "FAILED", "it ended before the limit, by itself"
    check_nothing_lost(checkout, finished, undisturbed)


def test_memory_exceeded(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    """The second attempt gets more. That of the profile grows with the attempt in the same way, from an estimate that suffices."""
    checkout.store.root.mkdir(parents=True)
    first = undisturbed.stacks()[0]
    copy = checkout.store.root / first.relative_to(undisturbed.store.root)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(first.read_bytes())
    before = checkout.finished()
    process = checkout.start("--set-resources", "train:mem_mb=350 if attempt == 1 else 2000")
    wait_for("the first attempt", lambda: cluster.running("train"))
    job = only(cluster.running("train"))
    wait_for("its end", lambda: state(cluster, job) in ("OUT_OF_MEMORY", "CANCELLED", "FAILED"), 120)
    finished = checkout.finished()  # before the second attempt has started Python
    done = finish(checkout, process)
    assert re.search(rf"StepId={job}\.\w+ exceeded memory limit", cluster.log("slurmd"))
    assert before and before.items() <= finished.items()
    assert done.trained == CELLS - len(finished) > 0
    check_nothing_lost(checkout, finished, undisturbed)


def test_preempted(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    """SLURM starts it again when the more important job has gone: the same job, and for Snakemake the same attempt."""
    process = checkout.start()
    checkout.wait_until_in_the_middle()
    finished, job = checkout.finished(), only(cluster.running("train"))
    urgent = run_command(
        "sbatch", "--parsable", "--partition=urgent", f"--cpus-per-task={CPUS}", "--output=/dev/null", "--wrap=sleep 5"
    )
    wait_for("the urgent job", lambda: state(cluster, urgent.strip()) == "RUNNING")
    assert state(cluster, job) == "PENDING"
    assert "checkpointed on SIGTERM" in checkout.log()
    finish(checkout, process)
    assert state(cluster, job) == "COMPLETED"
    assert resumed(checkout)
    check_nothing_lost(checkout, finished, undisturbed)


def test_node_fails(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    process = checkout.start()
    checkout.wait_until_in_the_middle()
    finished, job = checkout.finished(), only(cluster.running("train"))
    cluster.node("DOWN")
    try:
        checkout.go_on()
        wait_for("the end of the job", lambda: state(cluster, job) != "RUNNING" and not checkout.pids())
    finally:
        cluster.node("RESUME")
    finish(checkout, process)
    check_nothing_lost(checkout, finished, undisturbed)


def test_snakemake_killed_and_started_again(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    """Its job goes on by itself; the second Snakemake submits another, which works beside the first on the same store."""
    process = checkout.start()
    checkout.wait_until_in_the_middle()
    finished = checkout.finished()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert cluster.running("train")
    assert checkout.finish(checkout.start("--unlock")).code == 0
    second = checkout.start()
    wait_for("the other job", lambda: len(checkout.pids()) > 1, 120)
    checkout.go_on()
    finish(checkout, second)
    wait_for("the job left over", lambda: not checkout.pids())
    check_nothing_lost(checkout, finished, undisturbed)


def test_workers_of_a_whole_node(cluster: Cluster, checkout: ClusterCheckout, undisturbed: Checkout) -> None:
    """Each has one of the GPUs. All of them hear SIGTERM; and one that is killed loses its own cell alone."""
    checkout.configure(changed(SLOW, compute={**SLOW["compute"], "workers": CELLS}))
    process = checkout.start("--set-resources", "train:gpu=2", "train:slurm_partition=gpu")
    wait_for("three checkpoints", lambda: len(checkout.checkpoints()) == CELLS, 600, 0.02)
    checkout.hold()
    job, workers = only(cluster.running("train")), checkout.workers()
    assert len(workers) == CELLS
    assert f"NumCPUs={CELLS}" in cluster.details(job)
    environments = [Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in workers]
    gpus = [line for lines in environments for line in lines if line.startswith(b"CUDA_VISIBLE_DEVICES=")]
    assert sorted(gpus) == [b"CUDA_VISIBLE_DEVICES=0", b"CUDA_VISIBLE_DEVICES=0", b"CUDA_VISIBLE_DEVICES=1"]
    run_command("scancel", job)
    checkout.go_on()
    wait_for("the end of the job", lambda: not checkout.pids())
    assert checkout.log().count("checkpointed on SIGTERM at step") == CELLS

    wait_for("the next attempt", lambda: checkout.log().count("resuming a stack of 1 at step") == CELLS, 600, 0.02)
    checkout.hold()
    job, finished = only(cluster.running("train")), checkout.finished()
    os.kill(checkout.workers()[0], signal.SIGKILL)
    checkout.go_on()
    wait_for("the end of the job", lambda: state(cluster, job) == "FAILED", 600)
    assert "1 of 3 stacks are not finished, since a worker was killed (SIGKILL)" in checkout.log()
    assert not finished and len(checkout.finished()) == CELLS - 1
    finished = checkout.finished()
    finish(checkout, process)
    assert resumed(checkout)
    check_nothing_lost(checkout, finished, undisturbed)
