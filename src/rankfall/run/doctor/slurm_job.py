"""What a profile requests, what a SLURM cluster answers, and one short job through its queue: whether jobs start, and whether their node
shares files and time with this one."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankfall.errors import RankfallError
from rankfall.run.doctor import Check, fail, ok, warn

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
        yield fail("job", f"sbatch refuses a job of a minute: {said}")
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
            yield fail(
                "shared",
                f"job {job} ended ({state or 'unknown'}) and {there.parent} has not seen its file: put results where all nodes see them",
            )
            return
        time.sleep(0.2)
    if not there.exists():
        state = ask("squeue", "-h", "-j", job, "-o", "%T %r")[1]
        ask("scancel", job)
        yield warn(
            "job",
            f"job {job} did not start within {seconds} s ({state}): busy, or it cannot be met; --probe-seconds waits longer",
        )
        return
    _, moment, host = there.read_text().split()
    late = there.stat().st_mtime - float(moment)
    waited = max(0.0, time.time() - ended) if ended else 0.0
    yield ok("job", f"job {job} ran on {host}")
    yield ok("shared", f"{there.parent} is seen by both; a file of the node showed {waited:.1f} s after the job's end")
    if waited > 0.5 * float(settings.get("latency-wait", 5)):
        yield warn("shared", f"that is slow: set latency-wait: {int(4 * waited) + 5}")
    if abs(late) > LARGEST_SKEW:
        yield warn(
            "clock",
            f"{host} and the file system differ by {late:+.0f} s: Snakemake compares times; tell the site's people",
        )
    else:
        yield ok("clock", f"{host} and the file system agree to {abs(late):.1f} s")


def read_profile(folder: Path) -> Mapping[str, Any]:
    import yaml

    try:
        found = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except OSError as error:
        raise RankfallError(f"--profile: cannot read {folder / 'config.yaml'}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise RankfallError(
            f"--profile: {folder / 'config.yaml'} is not YAML: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(found, dict):
        raise RankfallError(f"--profile: {folder / 'config.yaml'} is not a mapping of options")
    return found


def read_resources(settings: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Return the values of a resource, for all rules and for single rules, as {line of the profile: value}."""
    places = {"default-resources": settings.get("default-resources") or {}}
    places |= {f"set-resources: {rule}": one for rule, one in (settings.get("set-resources") or {}).items()}
    return {
        f"{place}: {name}": str(values[name]).strip("'\"")
        for place, values in places.items()
        for name in names
        if isinstance(values, dict) and name in values
    }


def ask(*command: str) -> tuple[int, str]:
    """Run a command and return its exit code and its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, (done.stdout or done.stderr).strip()
