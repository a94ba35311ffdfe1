"""One run at a time works on a folder of results, whichever checkout or machine it is started from.

Snakemake's own lock lies in the checkout. This one lies in the results: a file that is made as long as there is none, says who works there,
is touched every minute, and goes with the process. Who was killed leaves it; then the next run takes it over.
"""

import atexit
import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankfall.disk import cannot
from rankfall.errors import RankfallError
from rankfall.processes import start_of, still_runs

TOUCHED = 60.0  # seconds between two signs of life
DEAD = 600.0  # seconds without one, after which a process of another machine is taken to have ended


def file_of(results: Path) -> Path:
    return results / "logs" / "run.lock"


def claim(results: Path) -> None:
    """Lock the results until this process ends. Raise where another process works on them."""
    path = file_of(results)
    own: dict[str, Any] = {"pid": os.getpid(), "host": socket.gethostname(), "folder": os.getcwd()}
    own["start"] = start_of(os.getpid())
    content = json.dumps(own)
    temporary = path.with_name(f".{path.name}.{own['host']}.{own['pid']}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(content)
        while True:
            try:
                os.link(temporary, path)  # with its content at once, and only where there is none
                break
            except FileExistsError:
                _take_over(path, temporary)
    except OSError as error:
        raise cannot("write", path, error) from error
    finally:
        temporary.unlink(missing_ok=True)
    threading.Thread(target=_touch, args=(path, content), daemon=True).start()
    atexit.register(_release, path, content, os.getpid())


def _take_over(path: Path, now: Path) -> None:
    """Remove the file of a process that has ended; raise where it lives. `now`: a file of this moment, by the clock of the file system."""
    try:
        text = path.read_text()
        silent = now.stat().st_mtime - path.stat().st_mtime
    except FileNotFoundError:
        return
    try:
        other = dict(json.loads(text))
    except ValueError:
        other = {}
    if _alive(other, silent):
        who = f"process {other.get('pid')} on {other.get('host')}, started in {other.get('folder')}"
        raise RankfallError(
            f"results: another run works on {path.parents[1]} ({who}); wait for it, or name another folder by `results:`; "
            f"if it is no longer there, remove {path}"
        )
    with suppress(FileNotFoundError):
        aside = path.with_name(f"{path.name}.{os.getpid()}")
        os.rename(path, aside)  # of two that find the same, one takes it away
        if aside.read_text() != text:  # and that was a new one's already: give it back
            os.link(aside, path)
        aside.unlink()


def _alive(other: Mapping[str, Any], silent: float) -> bool:
    """Whether the process that wrote a lock still runs. On another machine that is told by `silent`, the seconds since it touched it."""
    if not isinstance(other.get("host"), str):  # the file appears with its content: this one was damaged
        return False
    if other["host"] != socket.gethostname():
        return silent < DEAD
    pid = other.get("pid")
    return isinstance(pid, int) and pid != os.getpid() and still_runs(pid, other.get("start"))


def _touch(path: Path, content: str) -> None:
    while True:
        time.sleep(TOUCHED)
        with suppress(OSError):
            if path.read_text() == content:
                os.utime(path)


def _release(path: Path, content: str, owner: int) -> None:
    """Remove the lock, unless a fork of the process that made it ends."""
    with suppress(OSError):
        if os.getpid() == owner and path.read_text() == content:
            path.unlink()
