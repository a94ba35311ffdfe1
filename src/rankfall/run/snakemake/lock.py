"""One run at a time works on a folder of results, whichever checkout or machine it is started from: Snakemake removes the outputs of a job
before it runs, so two runs at once would take files from each other. Its own lock lies in the checkout; this one lies in the results.
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

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of file systems: then nothing is locked
_held: list[TextIO] = []  # until this process ends, however it ends: then the system takes the lock away


def lock_results(results: Path) -> None:
    """Lock a folder of results for the rest of this process. Raise where another process has."""
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
    """Who has a lock, in words."""
    try:
        owner = json.loads(path.read_text())
        return f"process {owner['pid']} on {owner['host']}, started in {owner['folder']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "it does not say who"
