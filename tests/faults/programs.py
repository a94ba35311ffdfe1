"""Programs that a test starts, watches, kills and waits for, quickly by a server that forks or slowly by Python itself."""

import array
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fork_server

from rankfall.run.forks.client import ADDRESS


class Hang(Exception):
    """A program has not ended in the time that it was given."""


@dataclass
class Program:
    """A running program with all that it started, a process group; what it says goes to a file."""

    leader: int
    connection: socket.socket
    output: Path
    said: bytes = field(default=b"", repr=False)
    code: int | None = None
    seconds: float = 0.0  # of processors, when it has ended

    def wait(self, seconds: float) -> int | None:
        """The exit status, once everything in the group is gone; None if that takes longer."""
        limit = time.monotonic() + seconds
        while self.code is None:
            left = max(0.0, limit - time.monotonic())
            if not select.select([self.connection], [], [], left)[0]:
                return None
            self.said += (received := self.connection.recv(64))
            if not received or b"\n" in self.said:
                code, seconds = self.said.split() or (-signal.SIGKILL, 0.0)
                self.code, self.seconds = int(code), float(seconds)
                self.connection.close()
        return self.code

    def end(self, seconds: float) -> int:
        """The exit status; what takes longer is killed, and raises."""
        code = self.wait(seconds)
        if code is None:
            self.kill()
            raise Hang(f"no end after {seconds:.0f} s\n{self.text()[-4000:]}")
        return code

    def kill(self) -> None:
        """As a power cut: all of the group at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.leader, signal.SIGKILL)
        if self.wait(30) is None:
            raise Hang("parts of a killed program are still there")

    def text(self) -> str:
        return self.output.read_text(errors="replace")


class Starter:
    """Starts programs in a process group of their own."""

    def __init__(self, folder: Path, libraries: Iterable[str] = fork_server.LIBRARIES) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.count = folder, 0
        self.python = fork_server.write_python(folder / "bin")
        self.sockets = tempfile.TemporaryDirectory(prefix="rankfall-")  # a socket's path must be short
        self.address = Path(self.sockets.name) / "server"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [sys.executable, "-P", fork_server.__file__, str(self.address), *libraries]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment | {"OMP_NUM_THREADS": "1"})

    def start(self, module: str, *arguments: str, cwd: Path, environment: dict[str, str]) -> Program:
        """`python -m module arguments`."""
        self.count += 1
        output = self.folder / f"{self.count}.out"
        program: dict[str, Any] = {
            "module": module,
            "arguments": arguments,
            "flags": [],
            "cwd": str(cwd),
            "umask": 0o22,
            "executable": str(self.python),
            # This is what starts programs here, and ends all of them at once.
            "environment": environment
            | {fork_server.ADDRESS: str(self.address.with_name(str(self.count))), ADDRESS: ""},
        }
        connection = self._connected()
        text = json.dumps(program).encode()
        with open(os.devnull) as nothing, output.open("wb") as file:
            files = array.array("i", [nothing.fileno(), file.fileno(), file.fileno()])
            connection.sendmsg([len(text).to_bytes(4, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        connection.sendall(text)
        said = b""
        while b"\n" not in said:
            received = connection.recv(64)
            if not received:
                raise RuntimeError("the fork server is gone")
            said += received
        leader, _, rest = said.partition(b"\n")
        return Program(int(leader), connection, output, rest)

    def _connected(self) -> socket.socket:
        limit = time.monotonic() + 120
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(str(self.address))
                return connection
            except OSError:
                connection.close()
                if self.server.poll() is not None or time.monotonic() > limit:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait(30)
        self.sockets.cleanup()
