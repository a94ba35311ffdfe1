"""Check this machine: Python and packages, processors and torch's threads, disk, and the store."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Literal

from rankfall.errors import RankfallError

LEAST_FREE = 1e9  # bytes; with less, a run may fill the disk
LEAST_FILES = 10_000  # files; with fewer, a run may use up the inodes
LARGEST_SKEW = 2.0  # seconds between this clock and the file system's


@dataclass(frozen=True)
class Check:
    """The result of a check. `warn` costs time or comfort; `fail` stops a run or spoils its results."""

    state: Literal["ok", "warn", "fail"]
    name: str
    text: str


ok, warn, fail = partial(Check, "ok"), partial(Check, "warn"), partial(Check, "fail")


def packages() -> Iterator[Check]:
    """Check that every required package is installed in a supported version."""
    from packaging.requirements import Requirement

    yield ok("python", f"{platform.python_version()} at {sys.executable}")
    try:
        requirements = [Requirement(line) for line in metadata.requires("rankfall") or []]
    except metadata.PackageNotFoundError:
        yield warn("packages", "rankfall is not installed as a package, so its requirements are unknown: `make setup`")
        return
    versions = []
    for requirement in requirements:
        optional = requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            if not optional:
                yield fail("packages", f"{requirement.name} is missing: `make setup`, or pip install '{requirement}'")
            continue
        versions.append(f"{requirement.name} {version}")
        if not requirement.specifier.contains(version, prereleases=True):
            report = warn if optional else fail
            yield report("packages", f"{requirement.name} {version} is not {requirement.specifier}: `make setup`")
    yield ok("packages", ", ".join(versions))


def processors() -> Iterator[Check]:
    """Report the usable processors, torch's threads on them, and GPUs."""
    import torch

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = torch.get_num_threads()
    text = f"{usable} usable, torch uses {threads} thread{'s' * (threads != 1)} unless the config's compute.threads says otherwise"
    if threads > usable:
        yield warn("processors", f"{text}: more than there are; set OMP_NUM_THREADS={usable}")
    else:
        yield ok("processors", text)
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        yield ok("gpu", f"{', '.join(names)} (torch {torch.__version__})")
    elif shutil.which("nvidia-smi"):
        yield warn("gpu", f"nvidia-smi is here, but torch {torch.__version__} sees no GPU: is it a build for CPUs?")
    else:
        yield ok("gpu", f"none; torch {torch.__version__} computes on the CPU")


def results(folder: Path) -> Iterator[Check]:
    """Check that results can be written, that there is room, and that the file system's clock agrees with this machine's."""
    from rankfall.disk import write

    probe = folder / "store" / f"doctor.{os.getpid()}"
    try:
        write(probe, b"probe")
        skew = probe.stat().st_mtime - time.time()
        probe.unlink()
    except RankfallError as error:
        yield fail("results", str(error))
        return
    yield ok("results", f"{folder} can be written")
    free, inodes = shutil.disk_usage(folder).free, os.statvfs(folder)
    room = f"{free / 1e9:.1f} GB free"
    yield ok("disk", room) if free > LEAST_FREE else warn("disk", f"only {room}: `rankfall gc` may find some")
    if inodes.f_files and inodes.f_favail < LEAST_FILES:
        yield warn("disk", f"only {inodes.f_favail} more files fit on this file system")
    if abs(skew) > LARGEST_SKEW:
        yield warn("clock", f"the file system's clock is {skew:+.0f} s off this machine's: Snakemake compares times")


def store(folder: Path, verify: bool) -> Iterator[Check]:
    """Count the cells of the store. With `verify`, also check every file against its digest."""
    from rankfall.run.store import Store
    from rankfall.run.store.inventory import verify as read_all

    stored = Store(folder / "store")
    read, damaged = read_all(stored) if verify else (0, 0)  # first, since counting cells sets damaged files aside too
    cells = sum(1 for _ in stored.records())
    aside = stored.root / "damaged"
    if count := len(list(aside.iterdir())) if aside.is_dir() else 0:
        yield warn("store", f"damaged files in {aside}: {count}; `rankfall gc` removes them")
    if not verify:
        yield ok("store", f"{cells} cells; --verify reads and checks every file")
    elif damaged:
        yield fail("store", f"{damaged} of {read} files were damaged and set aside: run again, they are recomputed")
    else:
        yield ok("store", f"{cells} cells; all {read} files are as they were written")
