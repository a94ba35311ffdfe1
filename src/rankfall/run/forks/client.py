"""The client in a job. It asks the server of its run to fork a worker that does the job's work, waits for it, and ends as the worker ends.

The client passes signals on. If it is killed, the server kills the worker too. Without a server, or if the server's Python, folder or
settings differ, the job does its work itself. So does a job on a cluster, since the Snakefile removes the address there.
"""

import array
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

ADDRESS = "RANKFALL_FORKS"  # an environment variable: the socket of a run's server; empty for no server
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
THREADS = (  # libraries read them when they are imported, so they must be equal in a fork
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)


def run_in_fork(arguments: list[str]) -> int | None:
    """Run `rankfall <arguments>` in a fork of the server and return its exit code; None if this process must do the work."""
    address = os.environ.get(ADDRESS)
    if not address:
        return None
    received: list[int] = []
    worker = 0

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if worker:
            _send(worker, number)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
        try:
            server.connect(address)
            _ask(server, arguments)
            answers = server.makefile("r")
            worker = int(answers.readline() or 0)
            if worker:
                for number in received:  # arrived before the worker was known
                    _send(worker, number)
                return _exit_code(int(answers.readline() or -signal.SIGKILL))
        except OSError:  # the server is gone
            if worker:
                return _exit_code(-signal.SIGKILL)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    for number in received:
        os.kill(os.getpid(), number)
    return None


def comparable_state(environment: dict[str, str], prefix: str, cwd: str) -> dict[str, str | None]:
    """Return the settings that must be equal for a fork to act like a new Python: the Python, the import path, the folder, the threads."""
    settings = {name: environment.get(name) for name in (*THREADS, "PYTHONPATH", "CUDA_VISIBLE_DEVICES")}
    return {"prefix": prefix, "cwd": cwd, **settings}


def _ask(server: socket.socket, arguments: list[str]) -> None:
    """Send a request: this process's standard files and the length of a JSON text, then the text."""
    environment = dict(os.environ)
    request = {
        "arguments": arguments,
        "environment": environment,
        "alike": comparable_state(environment, sys.prefix, os.getcwd()),
        "umask": _umask(),
    }
    text = json.dumps(request).encode()
    files = array.array("i", [0, 1, 2])
    server.sendmsg([len(text).to_bytes(4, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    server.sendall(text)


def _exit_code(code: int) -> int:
    """Return the exit code. If a signal ended the worker, end this process by the same signal."""
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _send(worker: int, number: int) -> None:
    """Send a signal to the worker, unless it has just ended."""
    with suppress(ProcessLookupError):
        os.kill(worker, number)


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0o77)
    os.umask(mask)
    return mask
