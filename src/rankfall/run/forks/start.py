"""Starts the server of a run."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from rankfall.run.forks.client import ADDRESS, THREADS

SERVER = (sys.executable, "-m", "rankfall.run.forks.server")
PROGRAM = "rankfall.cli"  # by its name: the server stands below it
PREFIX, NAME = "rankfall-", "forks"
FEWEST = 4  # jobs for which it is worth it: the server itself imports what one job would


class Forks:
    """A server that lives as long as this object, or this process: it ends when its standard input does."""

    def __init__(self, config: Path, threads: int, jobs: Iterable[str]) -> None:
        """`config`: the configuration's file, whose plan the server makes once; `threads`: of a job; `jobs`: which kinds there are."""
        sweep()
        self.folder = tempfile.TemporaryDirectory(prefix=PREFIX)  # of this user alone; a socket's path must be short
        address = os.path.join(self.folder.name, NAME)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(address)
            listening.listen(128)
            self.process = subprocess.Popen(
                [*SERVER, str(listening.fileno()), PROGRAM, str(config), *sorted(set(jobs))],
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


def sweep() -> None:
    """Removes what runs of this user left behind that were killed together with their servers: folders with a dead socket alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and os.listdir(folder) == [NAME] and is_dead(folder / NAME):
                (folder / NAME).unlink()
                folder.rmdir()


def is_dead(path: Path) -> bool:
    """Whether no process has this socket. One of another type is refused by a living one too, with another error, and never reaches it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(os.fspath(path))
        except ConnectionRefusedError:
            return stat.S_ISSOCK(path.lstat().st_mode)  # a file that is no socket refuses too
        except OSError:
            pass
    return False


def start(config: Path, threads: int, jobs: Sequence[str]) -> Forks | None:
    """A server for these jobs on this machine, and its address in the environment of all that is started from here on. None where
    it is not worth it, or where the environment has an address already, be it empty. A job is its rule; `measure` and what it measures."""
    if ADDRESS in os.environ or len(jobs) < FEWEST:
        return None
    forks = Forks(config, threads, jobs)
    os.environ[ADDRESS] = forks.address
    return forks
