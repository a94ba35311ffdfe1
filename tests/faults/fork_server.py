"""Python programs that start at once: a process that has imported the libraries once forks for each of them.

A run of the workflow is some ten short programs, and each would spend two seconds on importing torch. Here

- `serve` imports the libraries (none of Rankfall's own modules: those are imported anew by every program, as always);
- asked for a program, it forks a leader: a process group of its own, so that a kill of the group ends all of the run;
- a leader that starts programs itself, as Snakemake does, has a nursery beside it in its group. `python` is then a script
  (`write_python`) that asks the nursery for the program, lends it its own standard files and ends as it ends.

A program finds the directory, environment, arguments, standard files, signals and import path that a Python of its own would
have given it. What is called with options that are not known here is run by the real Python.
"""

import array
import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import stat
import sys
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = (
    "numpy", "pandas", "pyarrow.parquet", "pyarrow.compute", "torch", "pydantic", "yaml", "scipy.special",
    "matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "rich.progress",
    "snakemake.cli", "snakemake.api", "snakemake.workflow", "snakemake.shell", "snakemake.script", "snakemake.report",
    "snakemake.executors.local", "snakemake_executor_plugin_slurm",
)  # fmt: skip
ADDRESS = "RANKFALL_TEST_NURSERY"  # where a run's nursery listens
SUBREAPER = 36  # prctl: orphans below this process become its children

PYTHON = """#!{real} -IS
import array, json, os, socket, sys
address, words = os.environ.get("{address}"), sys.argv[1:]
flags = [word for word in words[:1] if word in ("-B", "-P")]
if not address or words[len(flags):len(flags) + 1] != ["-m"] or words[len(flags) + 1] == "snakemake":
    os.execv("{real}", ["{real}", *words])
program = dict(module=words[len(flags) + 1], arguments=words[len(flags) + 2:], flags=flags,
               cwd=os.getcwd(), environment=dict(os.environ), umask=os.umask(0o22))
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as nursery:
    nursery.connect(address)
    text = json.dumps(program).encode()
    files = array.array("i", [0, 1, 2])
    nursery.sendmsg([len(text).to_bytes(4, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    nursery.sendall(text)
    answer = nursery.recv(64)
code = int(answer or -9)
if code < 0:
    import signal
    signal.signal(-code, signal.SIG_DFL) if -code not in (9, 19) else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def write_python(folder: Path) -> Path:
    """The script that stands for Python, in a folder that can be put into PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "python"
    script.write_text(PYTHON.format(real=sys.executable, address=ADDRESS))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def serve(address: str, libraries: Iterable[str]) -> None:
    """Answer requests for leaders until nobody holds the other end of standard input."""
    for name in libraries:
        with suppress(ImportError):
            importlib.import_module(name)
    assert not any(name.split(".")[0] == "rankfall" for name in sys.modules), "Rankfall must be imported by programs"
    assert threading.active_count() == 1, "a fork would lose the other threads"
    gc.collect()
    gc.freeze()
    listening = _listen(address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if 0 in ready:
                return
            connection, _ = listening.accept()
            asked = _receive(connection)
            if asked is None:
                continue
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _keep(connection, *asked)
            connection.close()
            _close(asked[1])


def _keep(connection: socket.socket, program: dict[str, Any], files: list[int]) -> NoReturn:
    """Start a leader and say how it ended, once everything in its group is gone, and how long processors worked on it."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    leader = os.fork()
    if leader == 0:
        connection.close()
        os.setsid()
        if nursery := program["environment"].get(ADDRESS):
            _start_nursery(nursery)
        _become(program, files)
    _close(files)
    connection.sendall(f"{leader}\n".encode())
    code, seconds = 0, 0.0
    with suppress(ChildProcessError):
        while True:
            child, status, used = os.wait4(-1, 0)
            seconds += used.ru_utime + used.ru_stime
            if child == leader:
                code = os.waitstatus_to_exitcode(status)
    with suppress(OSError):
        connection.sendall(f"{code} {seconds:.3f}\n".encode())
    os._exit(0)


def _start_nursery(address: str) -> None:
    """Beside this process, for as long as it lives."""
    listening = _listen(address)
    alive, held = os.pipe()  # `held` closes with the leader
    if os.fork():
        os.close(alive)
        listening.close()
        return
    os.close(held)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _nurse(listening, alive)
    os._exit(0)


def _nurse(listening: socket.socket, alive: int) -> None:
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for source in (listening, alive, ended):
            selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == alive:
                    return
                if key.fd == ended:
                    os.read(ended, 4096)
                    for child, code in _reaped():
                        connection = children.pop(child)
                        with suppress(KeyError):
                            selector.unregister(connection)
                        with suppress(OSError):
                            connection.sendall(str(code).encode())
                        connection.close()
                elif key.fileobj is listening:
                    connection, _ = listening.accept()
                    asked = _receive(connection)
                    if asked is None:
                        continue
                    child = os.fork()
                    if child == 0:
                        signal.set_wakeup_fd(-1)
                        selector.close()
                        for other in (listening, connection, *children.values()):
                            other.close()
                        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGCHLD):
                            signal.signal(number, signal.SIG_DFL)
                        signal.signal(signal.SIGINT, signal.default_int_handler)
                        _close([alive, ended, wake])
                        _become(*asked)
                    _close(asked[1])
                    children[child] = connection
                    selector.register(connection, selectors.EVENT_READ)
                else:  # whoever asked was killed: what it stands for is, too
                    selector.unregister(key.fileobj)
                    for child, connection in children.items():
                        if connection is key.fileobj:
                            os.kill(child, signal.SIGKILL)


def _reaped() -> list[tuple[int, int]]:
    found = []
    with suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            found.append((child, os.waitstatus_to_exitcode(status)))
    return found


def _become(program: dict[str, Any], files: list[int]) -> NoReturn:
    """Be that program, with all that a new Python would have set up, and end."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    _close([file for file in files if file > 2])
    environment = program["environment"]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(program["cwd"])
    os.umask(program["umask"])
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.dont_write_bytecode = "-B" in program["flags"] or bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.pycache_prefix = environment.get("PYTHONPYCACHEPREFIX") or None
    if executable := program.get("executable"):
        sys.executable = executable
    first = [] if "-P" in program["flags"] or environment.get("PYTHONSAFEPATH") else [program["cwd"]]
    given = [os.path.abspath(path) for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [*first, *given, *sys.path]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    sys.argv = [program["module"], *program["arguments"]]
    code = 1
    try:
        runpy.run_module(program["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if not isinstance(end.code, int | None):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code & 0xFF)


def _listen(address: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    Path(address).unlink(missing_ok=True)
    listening.bind(address)
    listening.listen(64)
    return listening


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """What to run, and the standard files to run it with; None from one who was killed before all was said."""
    files = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * files.itemsize))
    for _, _, data in ancillary:
        files.frombytes(data)
    size, text = int.from_bytes(head, "little"), io.BytesIO()
    while text.tell() < size and text.write(connection.recv(size - text.tell())):
        pass
    if not size or text.tell() < size:
        _close(list(files))
        connection.close()
        return None
    return json.loads(text.getvalue()), list(files)


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
