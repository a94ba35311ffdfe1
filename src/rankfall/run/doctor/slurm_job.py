"""One short job through the queue. It shows whether jobs start, and whether their node shares files and time with this one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankfall.run.doctor import Check
from rankfall.run.doctor.slurm_site import ask, read_resources

LARGEST_SKEW = 2.0  # seconds


def probe(settings: Mapping[str, Any], results: Path, seconds: int) -> Iterator[Check]:
    """Submit a job of a second and check that it starts, shares files with this node in both directions, and has the same time."""
    folder = (results / "logs").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    here, there = folder / f"doctor.{os.getpid()}.here", folder / f"doctor.{os.getpid()}.there"
    here.write_text("seen\n")
    options = [
        f"--partition={v}" for p, v in read_resources(settings, "slurm_partition").items() if p.startswith("default")
    ]
    options += [
        f"--account={v}" for p, v in read_resources(settings, "slurm_account").items() if p.startswith("default")
    ]
    script = f'cat "{here}" >"{there}.part" && date +%s.%N >>"{there}.part" && hostname >>"{there}.part" && mv "{there}.part" "{there}"'
    code, said = ask(
        "sbatch",
        "--parsable",
        "--job-name=rankfall_doctor",
        "--time=1",
        "--mem=50",
        f"--output={folder}/doctor.log",
        *options,
        "--wrap",
        script,
    )
    if code:
        yield Check("job", "fail", f"sbatch refuses a job of a minute: {said}")
        here.unlink()
        return
    job = said.split(";")[0]
    try:
        yield from watch_job(job, there, settings, seconds)
    finally:
        for path in (here, there, folder / "doctor.log"):
            path.unlink(missing_ok=True)


def watch_job(job: str, there: Path, settings: Mapping[str, Any], seconds: int) -> Iterator[Check]:
    """Wait for the probing job and report how it ended."""
    limit, ended = time.time() + seconds, None
    while time.time() < limit and not there.exists():
        state = ask("squeue", "-h", "--states=all", "-j", job, "-o", "%T %r")[1]
        if ended is None and not state.startswith(("PENDING", "RUNNING", "CONFIGURING", "COMPLETING")):
            ended = time.time()
        if ended and time.time() - ended > float(settings.get("latency-wait", 5)):
            yield Check(
                "shared",
                "fail",
                f"job {job} ended ({state or 'unknown'}) and {there.parent} has not seen its file: put results where all nodes see them",
            )
            return
        time.sleep(0.2)
    if not there.exists():
        state = ask("squeue", "-h", "-j", job, "-o", "%T %r")[1]
        ask("scancel", job)
        yield Check(
            "job",
            "warn",
            f"job {job} did not start within {seconds} s ({state}): busy, or it cannot be met; --probe-seconds waits longer",
        )
        return
    _, moment, host = there.read_text().split()
    late = there.stat().st_mtime - float(moment)
    waited = max(0.0, time.time() - ended) if ended else 0.0
    yield Check("job", "ok", f"job {job} ran on {host}")
    yield Check(
        "shared", "ok", f"{there.parent} is seen by both; a file of the node showed {waited:.1f} s after the job's end"
    )
    if waited > 0.5 * float(settings.get("latency-wait", 5)):
        yield Check("shared", "warn", f"that is slow: set latency-wait: {int(4 * waited) + 5}")
    if abs(late) > LARGEST_SKEW:
        yield Check(
            "clock",
            "warn",
            f"{host} and the file system differ by {late:+.0f} s: Snakemake compares times; tell the site's people",
        )
    else:
        yield Check("clock", "ok", f"{host} and the file system agree to {abs(late):.1f} s")
