"""Starts the server of a run."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from rankfall.forks.client import ADDRESS, THREADS

PROGRAM = "rankfall.cli"  # by its name: the server stands below it
FEWEST = 4  # jobs for which it is worth it: the server itself imports what one job would


class Forks:
    """A server that lives as long as this object, or this process: it ends when its standard input does."""

    def __init__(self, config: Path, threads: int) -> None:
        """`config`: the configuration's file, whose plan the server makes once; `threads`: of a job."""
        self.folder = tempfile.TemporaryDirectory(
            prefix="rankfall-"
        )  # of this user alone; a socket's path must be short
        address = os.path.join(self.folder.name, "forks")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(address)
            listening.listen(128)
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rankfall.forks.server", str(listening.fileno()), PROGRAM, str(config)],
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
                env=os.environ | dict.fromkeys(THREADS, str(threads)),
                start_new_session=True,  # what a terminal sends to a run reaches a job once, through the process that asked
            )
        self.address = address

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def start(config: Path, threads: int, jobs: int) -> Forks | None:
    """A server for this many jobs on this machine, and its address in the environment of all that is started from here on. None where
    it is not worth it, or where the environment has an address already, be it empty."""
    if ADDRESS in os.environ or jobs < FEWEST:
        return None
    forks = Forks(config, threads)
    os.environ[ADDRESS] = forks.address
    return forks
