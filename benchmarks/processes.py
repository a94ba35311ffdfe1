"""What a command costs: seconds of processors, by it and all that it started, and seconds of a clock."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A process of its own, whose only children are those of the command. It inherits what these leave behind, such as the server that jobs are
# forked from (36 is PR_SET_CHILD_SUBREAPER), and waits for it: only the time of a child that was waited for is counted.
MEASURED = """
import ctypes, json, os, resource, subprocess, sys, time
began = time.monotonic()
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, time.monotonic() - began, done.stdout[-4000:]]))
"""


@dataclass(frozen=True)
class Used:
    seconds: float  # of processors
    clock: float


def run(command: Sequence[str], folder: Path = ROOT, given: Mapping[str, str] = {}) -> Used:
    """Runs a command of Python's to its good end; the package is this checkout's. `given`: of its environment."""
    measured = [sys.executable, "-c", MEASURED, sys.executable, *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src"), **given}
    done = subprocess.run(measured, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    code, seconds, clock, said = json.loads(done.stdout)
    if code:
        raise SystemExit(f"error: {' '.join(command)} ended with code {code}: {said}")
    return Used(seconds, clock)
