"""Name this machine's processor for rows and records.

The last bits of a number depend on the vectors that PyTorch uses (AVX2, AVX-512, ...) and on the family and model of the processor, by
which its libraries choose code. The name consists of these, so that processors with equal names compute equal bits.
"""

import os
import platform
import resource
import socket
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

CPUINFO = Path("/proc/cpuinfo")
NOISE = ("(R)", "(TM)", "(tm)", "CPU ", "Processor")


@cache
def processor() -> str:
    """Return a name such as `AMD EPYC, family 25 model 17, AVX512`, with the vectors that the environment allows."""
    description = fields(CPUINFO.read_text()) if CPUINFO.is_file() else {}
    return name(description, torch.backends.cpu.get_cpu_capability(), os.environ.get("NUMBA_CPU_NAME", ""))


def processor_of(device: torch.device) -> str:
    """Return the name of the GPU of a device, or of this machine's processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else processor()


def name(description: dict[str, str], vectors: str, compiled_for: str = "") -> str:
    """Build the name from Linux's description of a processor or, without it, from Python's description of the machine."""
    model = description.get("model name") or platform.processor() or platform.machine()
    for noise in NOISE:
        model = model.replace(noise, " ")
    model = " ".join(model.partition("@")[0].replace(",", " ").split())
    if "cpu family" in description:
        kind = f"family {description['cpu family']} model {description.get('model', '?')}"
    elif "CPU part" in description:  # ARM
        kind = f"implementer {description.get('CPU implementer', '?')} part {description['CPU part']}"
    else:
        kind = platform.machine()
    return ", ".join([model, kind, vectors] + [f"numba for {compiled_for}"] * bool(compiled_for))


def fields(text: str) -> dict[str, str]:
    """Return the fields of the first processor in `/proc/cpuinfo`."""
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Return the host, the processor or GPU, the versions of packages, and the time."""
    versions = {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": np.__version__}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "processor": processor_of(device), "versions": versions, "time": now}


def peak_megabytes() -> int:
    """Return the peak memory of this program so far.

    On Linux, `ru_maxrss` also counts the process before it executed this program: a fork as large as its parent, such as Snakemake with a
    large plan. `VmHWM` counts this program alone."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (2**20 if sys.platform == "darwin" else 2**10)
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 2**10
