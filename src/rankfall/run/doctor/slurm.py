"""Checks that a SLURM cluster can run a profile: `rankfall doctor --slurm`, on the node where Snakemake will run.

Every check that is not `ok` says which line of the profile to change, and to what.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankfall.run.doctor import Check, fail, ok, warn
from rankfall.run.doctor.slurm_job import ask, probe, read_profile, read_resources

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo", "srun")
INITIAL_WAIT = 40  # the default of the plugin's slurm-init-seconds-before-status-checks


def slurm(profile: Path, results: Path, probe_seconds: int) -> Iterator[Check]:
    """Run all checks in the order in which a site is set up. Later checks need the earlier ones."""
    settings = read_profile(profile)
    yield ok("profile", f"{profile / 'config.yaml'}")
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        yield fail(
            "slurm", f"no {', '.join(missing)} here: run this on a login node, perhaps after `module load slurm`"
        )
        return
    state, said = ask("scontrol", "ping")
    if state:
        yield fail("slurm", f"the controller does not answer: {said}")
        return
    config = dict(re.findall(r"^(\w+)\s*= (.*)$", ask("scontrol", "show", "config")[1], re.MULTILINE))
    yield ok("slurm", f"{config.get('SLURM_VERSION', 'unknown version')}, cluster {config.get('ClusterName')}")
    partitions = known_partitions()
    yield from partition(settings, partitions)
    yield from account(settings)
    yield from gres(settings, config)
    yield from status_command(settings, config)
    yield from preemption(settings, config, partitions)
    yield from memory(config)
    yield from probe(settings, results, probe_seconds)


def known_partitions() -> dict[str, dict[str, str]]:
    """Return the settings of each partition by name, as the controller reports them."""
    lines = ask("scontrol", "show", "partition", "-o")[1].splitlines()
    found = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    return {one["PartitionName"]: one for one in found if "PartitionName" in one}


def partition(settings: Mapping[str, Any], known: Mapping[str, Mapping[str, str]]) -> Iterator[Check]:
    """Check that the partitions of the profile exist and take jobs, or that SLURM has a default partition."""
    wanted = read_resources(settings, "slurm_partition")
    if not any(place.startswith("default-resources") for place in wanted):
        default = [name for name, one in known.items() if one.get("Default") == "YES"]
        if not default:
            listed = ", ".join(known) or "none"
            yield fail("partition", f"SLURM has no default: set default-resources: slurm_partition to one of {listed}")
        else:
            wanted["SLURM's own default"] = default[0]
    for place, name in wanted.items():
        if name not in known:
            yield fail(
                "partition", f"{place} is {name!r}, which does not exist: change it to one of {', '.join(known)}"
            )
        elif known[name].get("State") != "UP":
            yield warn("partition", f"{place} is {name!r}, which is {known[name].get('State')}: jobs will wait")
        else:
            limit = known[name].get("MaxTime", "UNLIMITED")
            text = f"{name} ({place}), jobs of up to {limit.lower()}"
            yield ok("partition", f"{text}; keep compute.shard_minutes well below" if limit != "UNLIMITED" else text)


def account(settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that the profile names an account of the user. Without accounting there is nothing to check."""
    wanted = read_resources(settings, "slurm_account")
    user = os.environ.get("USER") or "root"
    code, said = ask("sacctmgr", "-n", "-P", "show", "associations", f"user={user}", "format=account")
    if code:
        for place, name in wanted.items():
            yield warn("account", f"{place} is {name!r}, but this cluster keeps no accounts: take the line out")
        if not wanted:
            yield ok("account", "this cluster keeps no accounts, and the profile names none")
        return
    own = sorted(set(said.split()))
    for place, name in wanted.items():
        if name in own:
            yield ok("account", f"{name} ({place})")
        else:
            yield fail(
                "account", f"{place} is {name!r}, which is not yours: change it to one of {', '.join(own) or 'none'}"
            )
    if not wanted and len(own) > 1:
        yield warn(
            "account",
            f"you have several, SLURM takes its default: set default-resources: slurm_account to one of {', '.join(own)}",
        )
    elif not wanted:
        yield ok("account", f"{own[0] if own else 'none'}, SLURM's default for you")


def gres(settings: Mapping[str, Any], config: Mapping[str, str]) -> Iterator[Check]:
    """Check that some node has the resources that training requests."""
    there = set(ask("sinfo", "-h", "-o", "%G")[1].replace("\n", ",").split(",")) - {"", "(null)"}
    listed = ", ".join(sorted(there)) or "nothing"
    names = {re.sub(r"\(.*", "", one) for one in there}
    wanted = read_resources(settings, "gres") | {
        k: f"gpu:{v}" for k, v in read_resources(settings, "gpu", "gpus").items()
    }
    for place in read_resources(settings, "gpus"):
        yield fail("gres", f"{place} does not reach sbatch: write gres: gpu:1 instead")
    for place, value in wanted.items():
        if place.startswith("default-resources"):
            yield warn("gres", f"{place} is {value!r}: every job would hold a GPU; move it to set-resources: train")
        parts = value.split(":")
        kind = parts[1] if len(parts) > 1 and not parts[1].isdigit() else None
        fitting = [one for one in names if one.split(":")[0] == parts[0] and (kind is None or kind in one.split(":"))]
        if fitting:
            yield ok("gres", f"{value} ({place}); nodes have {listed}")
        else:
            yield fail("gres", f"{place} is {value!r}, but nodes have {listed}: change it")
    if not wanted:
        text = f"none asked for; nodes have {listed}"
        yield ok("gres", f"{text}: see the end of the profile" if any("gpu" in one for one in names) else text)


def status_command(settings: Mapping[str, Any], config: Mapping[str, str]) -> Iterator[Check]:
    """Check that Snakemake learns of jobs that have ended."""
    command = settings.get("slurm-status-command")
    accounting = "slurmdbd" in config.get("AccountingStorageType", "")
    wait = int(settings.get("slurm-init-seconds-before-status-checks", INITIAL_WAIT))
    age = int(re.sub(r"\D.*", "", config.get("MinJobAge", "300")) or 0)
    if command == "squeue" and age < 3 * wait:
        cure = (
            "slurm-status-command: sacct"
            if accounting
            else f"slurm-init-seconds-before-status-checks: {max(1, age // 3)}"
        )
        yield fail("status", f"squeue forgets jobs after {age} s (MinJobAge), asked first after {wait} s: set {cure}")
    elif command == "squeue":
        yield ok("status", f"squeue, which remembers jobs for {age} s")
    elif accounting:
        yield ok("status", f"{command or 'sacct, by the plugin itself'}")
    else:
        yield fail(
            "status",
            f"this cluster has no accounting, {command or 'sacct'} would wait for ever: set slurm-status-command: squeue",
        )


def preemption(
    settings: Mapping[str, Any], config: Mapping[str, str], known: Mapping[str, Mapping[str, str]]
) -> Iterator[Check]:
    """Check that a preempted job is requeued. Otherwise Snakemake's plugin waits for it forever."""
    wanted = set(read_resources(settings, "slurm_partition").values())
    used = {name: one for name, one in known.items() if name in wanted or (not wanted and one.get("Default") == "YES")}
    modes = {name: one.get("PreemptMode", config.get("PreemptMode", "OFF")) for name, one in used.items()}
    if config.get("PreemptType", "preempt/none") in ("preempt/none", "(null)") or set(modes.values()) <= {"OFF"}:
        yield ok("preemption", "jobs are not preempted here")
        return
    for name, mode in modes.items():
        if "CANCEL" in mode:
            text = f"{name} cancels preempted jobs, and Snakemake would wait for them: use another partition, or Ctrl-C and run again"
            yield warn("preemption", text)
        elif "REQUEUE" in mode and not settings.get("slurm-requeue"):
            yield fail("preemption", f"{name} requeues preempted jobs that may be: set slurm-requeue: true")
        else:
            yield ok("preemption", f"{name}: {mode.lower()}; a preempted job goes on from its checkpoint")


def memory(config: Mapping[str, str]) -> Iterator[Check]:
    """Check that the cluster schedules memory."""
    if "Memory" in config.get("SelectTypeParameters", "").title():
        yield ok("memory", f"is handed out ({config['SelectTypeParameters']})")
    else:
        yield warn("memory", "is not handed out on this cluster: lower `jobs` if nodes run out of it")
