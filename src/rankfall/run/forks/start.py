"""Start a run's server."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rankfall.run.forks.client import ADDRESS, THREADS

SERVER = (sys.executable, "-m", "rankfall.run.forks.server")
PROGRAM = "rankfall.cli"  # a name, since the server may not import a layer above its own
PREFIX, NAME = "rankfall-", "forks"  # of the socket's folder, and of the socket
FEWEST = 4  # smallest number of jobs for which a server pays: it imports as much as a job


class Forks:
    """A server that lives as long as this object or this process. It ends when its standard input is closed."""

    def __init__(self, config: Path, threads: int, jobs: Iterable[str]) -> None:
        """Start a server. `config` is the file of the planned configuration, `threads` the number of a job's threads, `jobs` their
        kinds.
        """
        self.folder = tempfile.TemporaryDirectory(prefix=PREFIX)  # for this user only; a socket's path must be short
        address = os.path.join(self.folder.name, NAME)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(address)
            listening.listen(128)
            self.process = subprocess.Popen(
                [*SERVER, str(listening.fileno()), PROGRAM, str(config), *sorted(set(jobs))],
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
                env=os.environ | dict.fromkeys(THREADS, str(threads)),
                start_new_session=True,  # a terminal's signals reach a job only once, through its client
            )
        self.address = address

    def close(self) -> None:
        """End the server and wait until its last job has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def start(config: Path, threads: int, jobs: Sequence[str]) -> Forks | None:
    """Start a server for these jobs on this machine, and put its address into the environment.

    Return None if a server does not pay, or if the environment has an address already, even an empty one. The name of a job is its rule, or
    `measure` and a measure."""
    if ADDRESS in os.environ or len(jobs) < FEWEST:
        return None
    forks = Forks(config, threads, jobs)
    os.environ[ADDRESS] = forks.address
    return forks
