"""Announce the results that running jobs need from a store, so that cleaning for another configuration keeps them.

An announcement is a small file under announced/, written when a job or a run begins, renewed every few minutes and removed when it ends. A
killed process leaves its file behind, which does not count once it was not renewed for an hour.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankfall.disk import StoreError, write
from rankfall.errors import RankfallError
from rankfall.run.objects import find_objects
from rankfall.run.store.files import Vault

FOLDER, SUFFIX = "announced", ".json"
RENEWED = 300.0  # seconds between two renewals
FORGOTTEN = 3600.0  # seconds without a renewal after which a process counts as dead


@dataclass(frozen=True)
class Announcement:
    """The keys of the results that a live process needs."""

    path: Path
    cells: list[str]
    data: list[str]
    measures: dict[str, list[str]]  # measure's component -> measure keys, to which a cell's key may be added


def announce(owner: object, root: Path, cells: Iterable[Any], measures: Mapping[str, Iterable[str]]) -> Path | None:
    """Announce cells and their data for as long as `owner` is in use. Return None if the store cannot be written."""
    listed = list(cells)
    name = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}{SUFFIX}"
    path = root / FOLDER / name
    content = {
        "cells": sorted({cell.key for cell in listed}),
        "data": sorted({cell.data_key for cell in listed}),
        "measures": {component: sorted(keys) for component, keys in measures.items()},
    }
    try:
        write(path, json.dumps(content))
        if objects := find_objects(root.parent):
            objects.put(path)
    except StoreError:  # only cleaning needs the file, and a job that cannot write results reports the error
        return None
    ended = threading.Event()
    threading.Thread(target=_renew, args=(path, ended), daemon=True).start()
    weakref.finalize(owner, _withdraw, path, os.getpid(), ended)  # at the latest when the interpreter exits
    return path


def read_announcements(store: Vault) -> tuple[list[Announcement], list[Path]]:
    """Return the announcements of live processes, and the files of processes that ended."""
    live: list[Announcement] = []
    dead: list[Path] = []
    now = store.now()
    for path, (_, written) in sorted(store.list_all(f"{store.root.name}/{FOLDER}").items()):
        if path.suffix != SUFFIX or path.name.startswith("."):
            continue
        if now - written >= FORGOTTEN:
            dead.append(path)
            continue
        with suppress(FileNotFoundError):  # the process has just ended
            if store.objects:
                store.objects.fetch(path)
            raw = json.loads(path.read_bytes())
            live.append(Announcement(path, raw["cells"], raw["data"], raw["measures"]))
    return live, dead


def _renew(path: Path, ended: threading.Event) -> None:
    """Set the time of the file to now, every RENEWED seconds until the process ends."""
    while not ended.wait(RENEWED):
        with suppress(OSError, RankfallError):
            os.utime(path)
            if objects := find_objects(path.parents[2]):
                objects.put(path)


def _withdraw(path: Path, pid: int, ended: threading.Event) -> None:
    """Remove the file, in the process that wrote it."""
    ended.set()
    if os.getpid() == pid:  # a forked child announced nothing
        with suppress(OSError, RankfallError):
            path.unlink(missing_ok=True)
            if objects := find_objects(path.parents[2]):
                objects.remove(path)


def is_running(pid: int) -> bool:
    """Return whether any process has this number. Numbers are reused, so it may be a later process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True
