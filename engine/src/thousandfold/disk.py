"""The engine's folder in the user's cache folder. Files can be made again, and one whose content lacks its digest counts as missing."""

import hashlib
import os
import secrets
import stat
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

NAME = "thousandfold"


def cache_home() -> Path | None:
    """Return the folder of compiled code and programs, or None if there is none that only this user can write.

    Compiled code is loaded from there and run, so a file that another user could have written is never read.
    """
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / NAME
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = home.stat()
    except (OSError, RuntimeError):  # read-only, or no home directory
        return None
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        warn_of_others(str(home))
        return None
    return home


@cache
def warn_of_others(home: str) -> None:
    """Warn once for each folder."""
    warnings.warn(
        f"the cache folder {home} belongs to another user or can be written by others, so that its code is not used; "
        "`chmod go-w` it, or set XDG_CACHE_HOME to a folder of yours",
        stacklevel=3,
    )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears complete or never."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


DAY = 86_400.0  # seconds; the time of a file's last use is noted once a day


def read_kept(path: Path | None) -> bytes | None:
    """Return the cached content, or None if it is missing or damaged."""
    try:
        if path is None or not path.is_file():
            return None
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != digest_of(content):
        return None
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)
    return content


def keep(path: Path | None, content: bytes) -> None:
    """Cache content for other processes, if the cache folder is writable."""
    if path is not None:
        with suppress(OSError):
            write_whole(path, digest_of(content) + b"\n" + content)


def path_in_cache(folder: str, name: str) -> Path | None:
    """Return the path of a file in the cache, or None if there is no cache."""
    home = cache_home()
    return None if home is None else home / folder / name


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
