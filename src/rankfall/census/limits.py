"""A function call in a separate process with limits of time and memory. A call that hangs, is killed or raises does not affect others.

The process is a fork, so modules are already imported. The limits apply to time and memory beyond the initial use.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLACK = 16  # limit of elapsed over processor seconds; only a hanging call reaches it, even if many processes share a processor
TIME, MEMORY = "time", "memory"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@dataclass(frozen=True)
class Spent:
    """The value of a call, or the reason if there is none, and the time and memory used."""

    value: Any  # None if there is a reason
    reason: str
    limit: str  # the limit that ended the call, if any
    seconds: float  # processor time
    megabytes: int  # peak memory


def run_within(function: Callable[..., Any], *arguments: Any, seconds: int, gigabytes: float) -> Spent:
    """Call `function(*arguments)`, whose value must be JSON."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        child = os.fork()
        if child == 0:
            answer(Path(file.name), function, arguments, seconds, int(gigabytes * 2**30))
        try:
            _, status, used = os.wait4(child, 0)
        except BaseException:  # this process has to end
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        text = Path(file.name).read_text()
    cost = round(used.ru_utime + used.ru_stime, 2), used.ru_maxrss // 1024
    if not text:
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if ended in (signal.SIGXCPU, signal.SIGALRM):
            return Spent(None, f"it takes more than {seconds} s of a processor, or {SLACK * seconds} s", TIME, *cost)
        ending = f"signal {signal.Signals(ended).name}" if ended else f"status {os.waitstatus_to_exitcode(status)}"
        return Spent(None, f"its process ended by {ending}, as where memory runs out", MEMORY, *cost)
    result = json.loads(text)
    return Spent(result.get("value"), result.get("reason", ""), result.get("limit", ""), *cost)


def answer(file: Path, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: int, most: int) -> None:
    """Compute in the fork, write the result or the reason, and end the process."""
    try:
        for number in (signal.SIGALRM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        # These are sent to the whole group. The caller handles them, else a row would report a killed process.
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        signal.alarm(SLACK * seconds)
        result = {"value": function(*arguments)}
    except BaseException as error:  # whatever a library raises, SystemExit included
        line = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        result = {"reason": line}
        if isinstance(error, MemoryError) or "can't allocate memory" in line or "Cannot allocate memory" in line:
            result = {"reason": f"it takes more than {most / 2**30:.1f} GB of memory", "limit": MEMORY}
    try:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass  # a hard limit cannot be raised; the file is small
    try:
        file.write_text(json.dumps(result))
    finally:
        os._exit(0)
