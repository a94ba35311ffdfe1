"""The server imports libraries once, and forks a worker for each job that asks.

    python -m rankfall.run.forks.server SOCKET PROGRAM CONFIG JOB...

A worker acts like a new Python: it has the job's arguments, environment, standard files and signals. It checks the current files against
the digests in its plan, so that it stops if a module was edited after the server imported it.

Between requests the server imports the modules that later jobs need, so that even the first jobs do not wait for them. JOB is a rule that
has jobs, or "measure" and a measure's name. A request waits for a running import to end, so the server imports only modules that some job
needs.
"""

import array
import atexit
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from rankfall.run.forks.client import PASSED_ON, comparable_state

AT_ONCE = (  # imported by nearly every job
    *("numpy", "pandas", "pyarrow.parquet", "pyarrow.compute", "pyarrow.dataset", "pyarrow.pandas_compat"),
    *("pydantic", "yaml", "torch", "safetensors.torch"),
    *(
        "rankfall.commands._planned",
        "rankfall.run.snakemake.jobs",
        "rankfall.run.jobs.training",
        "rankfall.run.jobs.measuring",
    ),
)
FIGURES = (
    *("matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf"),
    *("matplotlib.backends.backend_svg", "seaborn"),
    "rankfall.report.style",
)
FAST = ("numba", "torch._inductor", "rankfall.train.machine.agreement")  # the first trace imports torch._inductor
NUMERICS = ("scipy.special", "scipy.stats", "scipy.optimize")
MODELS = (
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",
)


class Server:
    """The server. `program` is the module of the command line. `ahead` yields the imports to make between requests, a piece at a time."""

    def __init__(self, listening: socket.socket, program: str, ahead: Iterator[Callable[[], object]]) -> None:
        self.listening, self.program, self.ahead = listening, program, ahead
        self.workers: dict[int, socket.socket] = {}  # process of a worker -> connection of its job
        self.alike = comparable_state(dict(os.environ), sys.prefix, os.getcwd())

    def run(self) -> None:
        """Serve until standard input is closed and the last job has ended."""
        ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        with selectors.DefaultSelector() as self.selector:
            for source in (self.listening.fileno(), 0, ended):
                self.selector.register(source, selectors.EVENT_READ)
            idle, serves = True, True
            while serves or self.workers:
                ready = self.selector.select(0 if idle and serves else None)
                if not ready:
                    idle = self.think_ahead()
                for key, _ in ready:
                    if key.fd == 0:  # the run has ended or was killed; wait for jobs that still work
                        serves = False
                        self.selector.unregister(0)
                        self.selector.unregister(self.listening.fileno())
                        leave(self.listening)
                    elif key.fd == ended:
                        os.read(ended, 4096)
                        self.answer()
                    elif serves and key.fd == self.listening.fileno():
                        self.accept((ended, wake))
                    else:
                        self.kill(key.fileobj)

    def think_ahead(self) -> bool:
        """Import one piece ahead. Return whether there was one."""
        piece = next(self.ahead, None)
        if piece is None:
            return False
        with suppress(Exception):  # a library is not installed, or jobs will refuse the configuration
            piece()
        gc.collect()
        gc.freeze()  # a collection in a fork would copy shared memory
        return True

    def accept(self, pipe: tuple[int, int]) -> None:
        """Fork a worker for a job that asks, or close its connection if a fork would differ from a new Python."""
        connection, _ = self.listening.accept()
        received = receive(connection)
        if received is None:
            return
        request, files = received
        if request["alike"] != self.alike or threading.active_count() > 1:  # a fork would lose other threads
            connection.close()
        else:
            # This process ignores these signals; the fork must not lose those that arrive before it has a job's handlers.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
            worker = os.fork()
            if worker == 0:
                signal.set_wakeup_fd(-1)
                self.selector.close()
                for other in (self.listening, connection, *self.workers.values()):
                    other.close()
                close(pipe)
                become(self.program, request, files, before)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            with suppress(OSError):
                connection.sendall(f"{worker}\n".encode())
            self.workers[worker] = connection
            self.selector.register(connection, selectors.EVENT_READ)
        close(files)

    def answer(self) -> None:
        """Send the exit codes of ended workers to their jobs."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                worker, status = ended
                connection = self.workers.pop(worker)
                with suppress(KeyError):
                    self.selector.unregister(connection)
                with suppress(OSError):
                    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                connection.close()

    def kill(self, connection: object) -> None:
        """Kill the worker of a job that was killed."""
        self.selector.unregister(connection)  # type: ignore[arg-type]
        for worker, other in self.workers.items():
            if other is connection:
                os.kill(worker, signal.SIGKILL)


def become(program: str, request: dict[str, Any], files: list[int], mask: Iterable[int]) -> NoReturn:
    """Do the work of a job and exit as it would. Signals that were blocked before the fork, but are not in `mask`, arrive now."""
    for number in (*PASSED_ON, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for standard, file in enumerate(files):
        os.dup2(file, standard)
    close(file for file in files if file > 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.umask(request["umask"])
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    sys.argv = ["rankfall", *request["arguments"]]
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = importlib.import_module(program).main(request["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
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


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return a request and its standard files, or None if the job was killed before it had sent everything."""
    files = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * files.itemsize))
    for _, _, data in ancillary:
        files.frombytes(data)
    size, text = int.from_bytes(head, "little"), io.BytesIO()
    while text.tell() < size and text.write(connection.recv(size - text.tell())):
        pass
    if not size or text.tell() < size:
        close(files)
        connection.close()
        return None
    return json.loads(text.getvalue()), list(files)


def leave(listening: socket.socket) -> None:
    """Remove the socket and its folder here, since a run that was killed cannot."""
    address = listening.getsockname()
    listening.close()
    with suppress(OSError):
        os.unlink(address)
        os.rmdir(os.path.dirname(address))


def close(files: Any) -> None:
    """Close file descriptors."""
    for file in files:
        os.close(file)


def pieces(config: str, jobs: frozenset[str]) -> Iterator[Callable[[], object]]:
    """Yield the work to do ahead: describe components, read files, and import libraries of training, figures and models that jobs use."""
    from rankfall import components
    from rankfall.run.guards import check_unchanged
    from rankfall.run.plan.grid import components_named_by
    from rankfall.run.plan.written import read_jobs, read_plan

    folder = Path(config).parent
    planned = read_jobs(folder)
    if planned is None:
        return
    plan = read_plan(folder)
    # Jobs then have the analyses of files and the descriptions of components in memory.
    yield lambda: components.prepare_descriptions(components_named_by(plan.config))
    yield lambda: check_unchanged({name: digests for code in planned["code_files"] for name, digests in code.items()})
    measured = [measure for name, measure in plan.measures.items() if f"measure {name}" in jobs]
    if "train" in jobs and set(planned["engines"]) - {"plain"}:
        yield from (make_importer(name) for name in FAST)
        yield read_kernels
    names = [*NUMERICS, *(FIGURES if jobs & {"figure", "page"} else ())]
    if any("rankfall/models/load.py" in measure.code for measure in measured):
        names += MODELS
    yield from (make_importer(name) for name in names)


def make_importer(name: str) -> Callable[[], object]:
    """Return a function that imports a module."""
    return lambda: importlib.import_module(name)


def read_kernels() -> None:
    """Load the machine code of the engine, which would take a second or two in each job.

    Nothing is compiled here, since no job could start meanwhile, not even one without the engine."""
    from thousandfold import runtime

    if runtime.is_compiled("float32"):
        runtime.prepare("float32")


def main() -> None:
    """Import libraries, then serve."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    listening.set_inheritable(False)
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_IGN)  # signals are for jobs; the server ends with its standard input
    for name in AT_ONCE:
        with suppress(ImportError):
            importlib.import_module(name)
    Server(listening, sys.argv[2], pieces(sys.argv[3], frozenset(sys.argv[4:]))).run()


if __name__ == "__main__":
    main()
