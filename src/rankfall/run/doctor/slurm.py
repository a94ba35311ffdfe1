"""Check that a SLURM cluster can run a profile: `rankfall doctor --slurm`, on the node where Snakemake will run.

Every check that is not `ok` names the line of the profile to change and its new value. The last check submits a job of a second, and tests
whether jobs start, and whether their node shares files and time with this one.
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
INITIAL_WAIT = 40  # seconds: the default of the plugin's slurm-init-seconds-before-status-checks
Partitions = Mapping[str, Mapping[str, str]]


def slurm(profile: Path, results: Path, probe_seconds: int) -> Iterator[Check]:
    """Run all checks in the order in which a site is set up: later checks need the earlier ones to pass."""
    settings = read(profile / "config.yaml")
    yield ok("profile", f"{profile / 'config.yaml'}")
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        yield fail(
            "slurm", f"no {', '.join(missing)} here: run this on a login node, perhaps after `module load slurm`"
        )
        return
    code, output = ask("scontrol", "ping")
    if code:
        yield fail("slurm", f"the controller does not answer: {output}")
        return
    config = dict(re.findall(r"^(\w+)\s*= (.*)$", ask("scontrol", "show", "config")[1], re.MULTILINE))
    yield ok("slurm", f"{config.get('SLURM_VERSION', 'unknown version')}, cluster {config.get('ClusterName')}")
    lines = ask("scontrol", "show", "partition", "-o")[1].splitlines()
    described = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    partitions = {fields["PartitionName"]: fields for fields in described if "PartitionName" in fields}
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
    named, listed = read_resources(settings, "slurm_partition"), ", ".join(known) or "none"
    if not any(line.startswith("default-resources") for line in named):
        default = [name for name, fields in known.items() if fields.get("Default") == "YES"]
        if default:
            named["SLURM's own default"] = default[0]
        else:
            yield fail("partition", f"SLURM has no default: set default-resources: slurm_partition to one of {listed}")
    for line, name in named.items():
        state, limit = (known.get(name, {}).get(field, "") for field in ("State", "MaxTime"))
        if name not in known:
            yield fail("partition", f"{line} is {name!r}, which does not exist: change it to one of {listed}")
        elif state != "UP":
            yield warn("partition", f"{line} is {name!r}, which is {state}: jobs will wait")
        else:
            limited = limit not in ("", "UNLIMITED")
            text = f"{name} ({line}), jobs of up to {limit.lower()}"
            yield ok("partition", f"{text}; keep compute.shard_minutes well below" if limited else text)


def account(settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that the profile names an account of the user. Without accounting there is nothing to check."""
    named, user = read_resources(settings, "slurm_account"), os.environ.get("USER") or "root"
    code, output = ask("sacctmgr", "-n", "-P", "show", "associations", f"user={user}", "format=account")
    accounts = [] if code else sorted(set(output.split()))
    listed = ", ".join(accounts) or "none"
    for line, name in named.items():
        if name in accounts:
            yield ok("account", f"{name} ({line})")
        else:
            text = f"{line} is {name!r}, which is not yours: change it to one of {listed}, or take it out"
            yield (warn if code else fail)("account", text)
    if not named:
        report = warn if len(accounts) > 1 else ok
        yield report("account", f"default-resources has no slurm_account, so SLURM takes its default; yours: {listed}")


def gpus(settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that SLURM takes the GPUs that the profile requests, in the partition of the rule."""
    gres = set(ask("sinfo", "-h", "-o", "%G")[1].replace("\n", ",").split(",")) - {"", "(null)"}
    nodes = f"nodes have {', '.join(sorted(gres)) or 'nothing'}"
    defaults = settings.get("default-resources") or {}
    rules = {name: {**defaults, **resources} for name, resources in (settings.get("set-resources") or {}).items()}
    dead_lines = list(read_resources(settings, "gpus"))
    for line in dead_lines:
        yield fail("gpu", f"{line} does not reach sbatch: write gpu: 1 instead")
    if default_options := " ".join(gpu_options(defaults)):
        yield warn(
            "gpu", f"default-resources: {default_options}: every job would hold a GPU; move it to set-resources: train"
        )
    gpu_rules = {name: resources for name, resources in rules.items() if gpu_options(resources)}
    for name, resources in gpu_rules.items():
        options = gpu_options(resources)
        code, output = ask(
            "sbatch", "--test-only", "--time=1", "--mem=50", *options, *queue(resources), "--wrap", "true"
        )
        request = f"set-resources: {name}: {' '.join(options)}"
        if code:
            yield fail("gpu", f"{request} is refused, and {nodes}: change it. SLURM says: {output}")
        else:
            yield ok("gpu", f"{request}; {nodes}")
    if not dead_lines and not default_options and not gpu_rules:
        yield ok("gpu", f"{nodes}; with compute.device: cuda, training requests a GPU for each worker")


def gpu_options(values: Mapping[str, Any]) -> list[str]:
    """Return the options by which the plugin hands `gres`, `gpu` and `gpu_model` to sbatch."""
    gres, number, model = (str(values.get(name) or "").strip("'\"") for name in ("gres", "gpu", "gpu_model"))
    gpus = f"{model}:{number or 1}" if model else number
    return [f"--{name}={value}" for name, value in (("gres", gres), ("gpus", gpus)) if value]


def queue(values: Mapping[str, Any]) -> list[str]:
    """Return the options by which the plugin hands partition and account to sbatch."""
    names = {option: str(values.get(f"slurm_{option}") or "").strip("'\"") for option in ("partition", "account")}
    return [f"--{option}={value}" for option, value in names.items() if value]


def status_command(settings: Mapping[str, Any], config: Mapping[str, str]) -> Iterator[Check]:
    """Check that Snakemake can learn that a job ended."""
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
        fault = f"this cluster has no accounting, {command or 'sacct'} would wait for ever"
        yield fail("status", f"{fault}: set slurm-status-command: squeue")


def preemption(settings: Mapping[str, Any], config: Mapping[str, str], known: Partitions) -> Iterator[Check]:
    """Check that a preempted job is requeued. Otherwise Snakemake's plugin waits for it forever."""
    named = set(read_resources(settings, "slurm_partition").values())
    partitions = {
        name: fields
        for name, fields in known.items()
        if name in named or (not named and fields.get("Default") == "YES")
    }
    modes = {name: fields.get("PreemptMode", config.get("PreemptMode", "OFF")) for name, fields in partitions.items()}
    if config.get("PreemptType", "preempt/none") in ("preempt/none", "(null)") or set(modes.values()) <= {"OFF"}:
        yield ok("preemption", "jobs are not preempted here")
        return
    for name, mode in modes.items():
        if "CANCEL" in mode:
            fault = f"{name} cancels preempted jobs, and Snakemake would wait for them"
            yield warn("preemption", f"{fault}: use another partition, or Ctrl-C and run again")
        elif "REQUEUE" in mode and not settings.get("slurm-requeue"):
            yield fail("preemption", f"{name} requeues preempted jobs that may be: set slurm-requeue: true")
        else:
            yield ok("preemption", f"{name}: {mode.lower()}; a preempted job goes on from its checkpoint")


def probe(settings: Mapping[str, Any], results: Path, seconds: int) -> Iterator[Check]:
    """Submit a job of a second and check that it starts, shares files with this node in both directions, and has the same time."""
    folder = (results / "logs").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    request, answer = folder / f"doctor.{os.getpid()}.here", folder / f"doctor.{os.getpid()}.there"
    request.write_text("seen\n")
    options = queue(settings.get("default-resources") or {})
    partial = f"{answer}.part"
    script = f'cat "{request}" >"{partial}" && date +%s.%N >>"{partial}" && hostname >>"{partial}" && mv "{partial}" "{answer}"'
    job_options = ("--parsable", "--job-name=rankfall_doctor", "--time=1", "--mem=50", f"--output={folder}/doctor.log")
    try:
        code, output = ask("sbatch", *job_options, *options, "--wrap", script)
        if code:
            yield fail("job", f"sbatch refuses a job of a minute: {output}")
        else:
            yield from watch_job(output.split(";")[0], answer, float(settings.get("latency-wait", 5)), seconds)
    finally:
        for path in (request, answer, folder / "doctor.log"):
            path.unlink(missing_ok=True)


def watch_job(job: str, answer: Path, latency: float, seconds: int) -> Iterator[Check]:
    """Wait for the probing job and report how it ended. `answer` is the file that the job writes."""
    limit, ended, state = time.time() + seconds, None, ""
    while time.time() < limit and not answer.exists():
        state = ask("squeue", "-h", "--states=all", "-j", job, "-o", "%T %r")[1]
        if ended is None and not state.startswith(("PENDING", "RUNNING", "CONFIGURING", "COMPLETING")):
            ended = time.time()
        if ended and time.time() - ended > latency:
            fault = f"job {job} ended ({state or 'unknown'}) and {answer.parent} has not seen its file"
            yield fail("shared", f"{fault}: put results where all nodes see them")
            return
        time.sleep(0.2)
    if not answer.exists():
        ask("scancel", job)
        fault = f"job {job} did not start within {seconds} s ({state}): busy, or it cannot be met"
        yield warn("job", f"{fault}; --probe-seconds waits longer")
        return
    _, moment, host = answer.read_text().split()
    skew = answer.stat().st_mtime - float(moment)
    waited = max(0.0, time.time() - ended) if ended else 0.0
    yield ok("job", f"job {job} ran on {host}")
    yield ok("shared", f"{answer.parent} is seen by both; a file of the node showed {waited:.1f} s after the job's end")
    if waited > 0.5 * latency:
        yield warn("shared", f"that is slow: set latency-wait: {int(4 * waited) + 5}")
    if abs(skew) > LARGEST_SKEW:
        fault = f"{host} and the file system differ by {skew:+.0f} s"
        yield warn("clock", f"{fault}: Snakemake compares times; tell the site's people")
    else:
        yield ok("clock", f"{host} and the file system agree to {abs(skew):.1f} s")


def read_resources(settings: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Return the values of a resource, for all rules and for single rules, as {line of the profile: value}."""
    places = {"default-resources": settings.get("default-resources") or {}}
    places |= {f"set-resources: {rule}": resources for rule, resources in (settings.get("set-resources") or {}).items()}
    return {
        f"{section}: {name}": str(values[name]).strip("'\"")
        for section, values in places.items()
        for name in names
        if isinstance(values, dict) and name in values
    }


def ask(*command: str) -> tuple[int, str]:
    """Run a command and return its exit code and its output."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return process.returncode, (process.stdout or process.stderr).strip()
