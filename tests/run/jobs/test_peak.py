"""A job's memory: what is counted as its peak, and that what is kept for steps is given back."""

import subprocess
import sys

import pytest

CHILD = """
import torch
from pathlib import Path
from rankfall.run.jobs.engine import peak_megabytes
from rankfall.train.device import keep_pages, separate_large_blocks


def megabytes():
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) >> 10


keep_pages()
before = megabytes()
found = [before, peak_megabytes()]  # the peak after: reading them takes some memory too
blocks = [torch.ones(1 << 18) for _ in range(64)]  # 64 MiB in small blocks, the last of which stays
blocks = blocks[-1:]
found.append(megabytes() - before)
with separate_large_blocks():
    found.append(megabytes() - before)
    torch.ones(1 << 24)  # 64 MiB in one block
    found.append(megabytes() - before)
torch.ones(1 << 24)
print(*found, megabytes() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="how Linux and glibc keep memory")
def test_peak_is_the_jobs_own_and_kept_memory_is_given_back() -> None:
    """Started by a process that is larger than the job will ever be: Linux's `ru_maxrss` would be that one's."""
    large = b"\1" * (600 << 20)
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    del large
    now, peak, kept, trimmed, apart, again = map(int, done.stdout.split())
    assert now <= peak < 500
    assert kept > 55 and trimmed < 15 and apart < 15 and again > 55
