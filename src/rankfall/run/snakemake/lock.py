"""Lock a folder of results, so that only one run at a time uses it, from any checkout or machine.

Snakemake removes the outputs of a job before it runs, so two concurrent runs would remove each other's files. Snakemake's lock is in the
checkout; this one is in the results.
"""

import errno
import fcntl
import json
import os
import socket
from pathlib import Path
from typing import TextIO

from rankfall.disk import cannot
from rankfall.errors import RankfallError

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # errors of file systems without locks
_held: list[TextIO] = []  # open files of locks; the system releases a lock when this process ends, even if it is killed


def lock_results(results: Path) -> None:
    """Lock a folder of results until this process ends. Raise if another process holds the lock."""
    path = results / "logs" / "run.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RankfallError(
                f"results: another run works on {results} ({describe_owner(path)}); wait for it"
            ) from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "folder": os.getcwd()}))
        file.flush()
        _held.append(file)
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise cannot("lock", path, error) from error


def describe_owner(path: Path) -> str:
    """Return process, host and folder of a lock's owner as text."""
    try:
        owner = json.loads(path.read_text())
        return f"process {owner['pid']} on {owner['host']}, started in {owner['folder']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "its lock names no process"
