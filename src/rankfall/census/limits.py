"""A function called in a process of its own, with limits of time and memory: one that hangs, is killed, or raises costs no other.

The process is a fork, so that what is imported is there at once. What it may use beyond what it begins with is limited.
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

SLACK = 16  # times the seconds of a processor that may pass on the clock: only what hangs takes them, also where many share a processor
TIME, MEMORY = "time", "memory"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@dataclass(frozen=True)
class Spent:
    """What a call gave, or why it gave nothing, and what it used."""

    value: Any  # None where there is a reason
    reason: str
    limit: str  # which limit ended it, if one did
    seconds: float  # of a processor
    megabytes: int  # the most at any moment


class Escaped(Exception):
    """An error that is about the whole run, not about this call."""


def run_within(
    function: Callable[..., Any], *arguments: Any, seconds: int, gigabytes: float, escape: tuple[str, ...] = ()
) -> Spent:
    """`function(*arguments)`, whose value is one that JSON has. Errors of the classes named in `escape` are raised here too."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        child = os.fork()
        if child == 0:
            answer(Path(file.name), function, arguments, seconds, int(gigabytes * 2**30), escape)
        try:
            _, status, used = os.wait4(child, 0)
        except BaseException:  # this process is told to end
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        text = Path(file.name).read_text()
    cost = round(used.ru_utime + used.ru_stime, 2), used.ru_maxrss // 1024
    if not text:
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if ended in (signal.SIGXCPU, signal.SIGALRM):
            return Spent(None, f"it takes more than {seconds} s of a processor, or {SLACK * seconds} s", TIME, *cost)
        what = f"signal {signal.Signals(ended).name}" if ended else f"status {os.waitstatus_to_exitcode(status)}"
        return Spent(None, f"its process ended by {what}, as where memory runs out", MEMORY, *cost)
    found = json.loads(text)
    if "escaped" in found:
        raise Escaped(found["escaped"])
    return Spent(found.get("value"), found.get("reason", ""), found.get("limit", ""), *cost)


def answer(
    file: Path,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    seconds: int,
    most: int,
    escape: tuple[str, ...],
) -> None:
    """In the fork: compute, write what came of it, and end."""
    try:
        for number in (signal.SIGALRM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        for (
            number
        ) in STOPS:  # sent to a whole group: the caller decides, or a type would have a row that says it was killed
            signal.signal(number, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        signal.alarm(SLACK * seconds)
        found = {"value": function(*arguments)}
    except BaseException as error:  # whatever a library raises, and whatever it takes to end
        line = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        names = {one.__name__ for one in type(error).__mro__}
        full = isinstance(error, MemoryError) or "can't allocate memory" in line or "Cannot allocate memory" in line
        found = {"escaped": line} if names & set(escape) else {"reason": line}
        if full:
            found = {"reason": f"it takes more than {most / 2**30:.1f} GB of memory", "limit": MEMORY}
    try:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass  # a hard limit cannot be raised; what is written is small
    try:
        file.write_text(json.dumps(found))
    finally:
        os._exit(0)
