"""Checks that a SLURM cluster can run a profile: `rankfall doctor --slurm`, on the node where Snakemake will run.

Every check that is not `ok` says which line of the profile to change, and to what. The last one submits a job of a second: whether jobs
start, and whether their node shares files and time with this one.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankfall.run.config.types import read
from rankfall.run.doctor.local import LARGEST_SKEW, Check, fail, ok, warn

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo", "srun")
INITIAL_WAIT = 40  # the default of the plugin's slurm-init-seconds-before-status-checks
Partitions = Mapping[str, Mapping[str, str]]


def slurm(profile: Path, results: Path, probe_seconds: int) -> Iterator[Check]:
    """Run all checks in the order in which a site is set up. Later checks need the earlier ones."""
    settings = read(profile / "config.yaml")
    yield ok("profile", f"{profile / 'config.yaml'}")
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        what = f"no {', '.join(missing)} here: run this on a login node, perhaps after `module load slurm`"
        yield fail("slurm", what)
        return
    state, said = ask("scontrol", "ping")
    if state:
        yield fail("slurm", f"the controller does not answer: {said}")
        return
    config = dict(re.findall(r"^(\w+)\s*= (.*)$", ask("scontrol", "show", "config")[1], re.MULTILINE))
    yield ok("slurm", f"{config.get('SLURM_VERSION', 'unknown version')}, cluster {config.get('ClusterName')}")
    lines = ask("scontrol", "show", "partition", "-o")[1].splitlines()
    found = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    partitions = {one["PartitionName"]: one for one in found if "PartitionName" in one}
    yield from partition(settings, partitions)
    yield from account(settings)
    yield from gpus(settings)
    yield from status_command(settings, config)
    yield from preemption(settings, config, partitions)
    if "Memory" in config.get("SelectTypeParameters", "").title():
        yield ok("memory", f"is handed out ({config['SelectTypeParameters']})")
    else:
        yield warn("memory", "is not handed out on this cluster: lower `jobs` if nodes run out of it")
    yield from probe(settings, results, probe_seconds)


def partition(settings: Mapping[str, Any], known: Partitions) -> Iterator[Check]:
    """Check that the partitions of the profile exist and take jobs, or that SLURM has a default partition."""
    wanted, listed = read_resources(settings, "slurm_partition"), ", ".join(known) or "none"
    if not any(place.startswith("default-resources") for place in wanted):
        default = [name for name, one in known.items() if one.get("Default") == "YES"]
        if default:
            wanted["SLURM's own default"] = default[0]
        else:
            yield fail("partition", f"SLURM has no default: set default-resources: slurm_partition to one of {listed}")
    for place, name in wanted.items():
        state, limit = (known.get(name, {}).get(field, "") for field in ("State", "MaxTime"))
        if name not in known:
            yield fail("partition", f"{place} is {name!r}, which does not exist: change it to one of {listed}")
        elif state != "UP":
            yield warn("partition", f"{place} is {name!r}, which is {state}: jobs will wait")
        else:
            limited = limit not in ("", "UNLIMITED")
            text = f"{name} ({place}), jobs of up to {limit.lower()}"
            yield ok("partition", f"{text}; keep compute.shard_minutes well below" if limited else text)


def account(settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that the profile names an account of the user. Without accounting there is nothing to check."""
    wanted, user = read_resources(settings, "slurm_account"), os.environ.get("USER") or "root"
    code, said = ask("sacctmgr", "-n", "-P", "show", "associations", f"user={user}", "format=account")
    own = [] if code else sorted(set(said.split()))
    for place, name in wanted.items():
        if code:
            yield warn("account", f"{place} is {name!r}, but this cluster keeps no accounts: take the line out")
        elif name in own:
            yield ok("account", f"{name} ({place})")
        else:
            listed = ", ".join(own) or "none"
            yield fail("account", f"{place} is {name!r}, which is not yours: change it to one of {listed}")
    if not wanted and len(own) > 1:
        what = "you have several, SLURM takes its default: set default-resources: slurm_account to one of"
        yield warn("account", f"{what} {', '.join(own)}")
    elif not wanted:
        yield ok("account", f"{own[0]}, SLURM's default for you" if own else "none is needed, and none is named")


def gpus(settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that SLURM takes the GPUs that the profile requests, in the partition of the rule."""
    there = set(ask("sinfo", "-h", "-o", "%G")[1].replace("\n", ",").split(",")) - {"", "(null)"}
    nodes = f"nodes have {', '.join(sorted(there)) or 'nothing'}"
    every = settings.get("default-resources") or {}
    rules = {name: {**every, **one} for name, one in (settings.get("set-resources") or {}).items()}
    wrong = list(read_resources(settings, "gpus"))
    for place in wrong:
        yield fail("gpu", f"{place} does not reach sbatch: write gpu: 1 instead")
    if by_all := " ".join(gpu_options(every)):
        yield warn("gpu", f"default-resources: {by_all}: every job would hold a GPU; move it to set-resources: train")
    asking = {name: one for name, one in rules.items() if gpu_options(one)}
    for name, one in asking.items():
        options = gpu_options(one)
        code, said = ask("sbatch", "--test-only", "--time=1", "--mem=50", *options, *queue(one), "--wrap", "true")
        what = f"set-resources: {name}: {' '.join(options)}"
        if code:
            yield fail("gpu", f"{what} is refused, and {nodes}: change it. SLURM says: {said}")
        else:
            yield ok("gpu", f"{what}; {nodes}")
    if not wrong and not by_all and not asking:
        yield ok("gpu", f"{nodes}; with compute.device: cuda, training requests a GPU for each worker")


def gpu_options(values: Mapping[str, Any]) -> list[str]:
    """Return the options by which the plugin hands `gres`, `gpu` and `gpu_model` to sbatch."""
    gres, number, model = (str(values.get(name) or "").strip("'\"") for name in ("gres", "gpu", "gpu_model"))
    asked = f"{model}:{number or 1}" if model else number
    return [f"--{name}={value}" for name, value in (("gres", gres), ("gpus", asked)) if value]


def queue(values: Mapping[str, Any]) -> list[str]:
    """Return the options by which the plugin hands partition and account to sbatch."""
    named = {option: str(values.get(f"slurm_{option}") or "").strip("'\"") for option in ("partition", "account")}
    return [f"--{option}={value}" for option, value in named.items() if value]


def status_command(settings: Mapping[str, Any], config: Mapping[str, str]) -> Iterator[Check]:
    """Check that Snakemake learns of jobs that have ended."""
    command = settings.get("slurm-status-command")
    accounting = "slurmdbd" in config.get("AccountingStorageType", "")
    wait = int(settings.get("slurm-init-seconds-before-status-checks", INITIAL_WAIT))
    age = int(re.sub(r"\D.*", "", config.get("MinJobAge", "300")) or 0)
    if command == "squeue" and age < 3 * wait:
        sooner = f"slurm-init-seconds-before-status-checks: {max(1, age // 3)}"
        cure = "slurm-status-command: sacct" if accounting else sooner
        yield fail("status", f"squeue forgets jobs after {age} s (MinJobAge), asked first after {wait} s: set {cure}")
    elif command == "squeue":
        yield ok("status", f"squeue, which remembers jobs for {age} s")
    elif accounting:
        yield ok("status", f"{command or 'sacct, by the plugin itself'}")
    else:
        what = f"this cluster has no accounting, {command or 'sacct'} would wait for ever"
        yield fail("status", f"{what}: set slurm-status-command: squeue")


def preemption(settings: Mapping[str, Any], config: Mapping[str, str], known: Partitions) -> Iterator[Check]:
    """Check that a preempted job is requeued. Otherwise Snakemake's plugin waits for it forever."""
    wanted = set(read_resources(settings, "slurm_partition").values())
    used = {name: one for name, one in known.items() if name in wanted or (not wanted and one.get("Default") == "YES")}
    modes = {name: one.get("PreemptMode", config.get("PreemptMode", "OFF")) for name, one in used.items()}
    if config.get("PreemptType", "preempt/none") in ("preempt/none", "(null)") or set(modes.values()) <= {"OFF"}:
        yield ok("preemption", "jobs are not preempted here")
        return
    for name, mode in modes.items():
        if "CANCEL" in mode:
            what = f"{name} cancels preempted jobs, and Snakemake would wait for them"
            yield warn("preemption", f"{what}: use another partition, or Ctrl-C and run again")
        elif "REQUEUE" in mode and not settings.get("slurm-requeue"):
            yield fail("preemption", f"{name} requeues preempted jobs that may be: set slurm-requeue: true")
        else:
            yield ok("preemption", f"{name}: {mode.lower()}; a preempted job goes on from its checkpoint")


def probe(settings: Mapping[str, Any], results: Path, seconds: int) -> Iterator[Check]:
    """Submit a job of a second and check that it starts, shares files with this node in both directions, and has the same time."""
    folder = (results / "logs").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    here, there = folder / f"doctor.{os.getpid()}.here", folder / f"doctor.{os.getpid()}.there"
    here.write_text("seen\n")
    options = queue(settings.get("default-resources") or {})
    part = f"{there}.part"
    script = f'cat "{here}" >"{part}" && date +%s.%N >>"{part}" && hostname >>"{part}" && mv "{part}" "{there}"'
    about = ("--parsable", "--job-name=rankfall_doctor", "--time=1", "--mem=50", f"--output={folder}/doctor.log")
    try:
        code, said = ask("sbatch", *about, *options, "--wrap", script)
        if code:
            yield fail("job", f"sbatch refuses a job of a minute: {said}")
        else:
            yield from watch_job(said.split(";")[0], there, float(settings.get("latency-wait", 5)), seconds)
    finally:
        for path in (here, there, folder / "doctor.log"):
            path.unlink(missing_ok=True)


def watch_job(job: str, there: Path, latency: float, seconds: int) -> Iterator[Check]:
    """Wait for the probing job and report how it ended."""
    limit, ended, state = time.time() + seconds, None, ""
    while time.time() < limit and not there.exists():
        state = ask("squeue", "-h", "--states=all", "-j", job, "-o", "%T %r")[1]
        if ended is None and not state.startswith(("PENDING", "RUNNING", "CONFIGURING", "COMPLETING")):
            ended = time.time()
        if ended and time.time() - ended > latency:
            what = f"job {job} ended ({state or 'unknown'}) and {there.parent} has not seen its file"
            yield fail("shared", f"{what}: put results where all nodes see them")
            return
        time.sleep(0.2)
    if not there.exists():
        ask("scancel", job)
        what = f"job {job} did not start within {seconds} s ({state}): busy, or it cannot be met"
        yield warn("job", f"{what}; --probe-seconds waits longer")
        return
    _, moment, host = there.read_text().split()
    late = there.stat().st_mtime - float(moment)
    waited = max(0.0, time.time() - ended) if ended else 0.0
    yield ok("job", f"job {job} ran on {host}")
    yield ok("shared", f"{there.parent} is seen by both; a file of the node showed {waited:.1f} s after the job's end")
    if waited > 0.5 * latency:
        yield warn("shared", f"that is slow: set latency-wait: {int(4 * waited) + 5}")
    if abs(late) > LARGEST_SKEW:
        what = f"{host} and the file system differ by {late:+.0f} s"
        yield warn("clock", f"{what}: Snakemake compares times; tell the site's people")
    else:
        yield ok("clock", f"{host} and the file system agree to {abs(late):.1f} s")


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
