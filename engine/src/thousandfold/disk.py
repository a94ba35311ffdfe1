"""The engine's folder in the user's cache folder. Nothing else is written, and every file can be made again."""

import os
import secrets
import stat
import warnings
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
        found = home.stat()
    except (OSError, RuntimeError):  # read-only, or no home directory
        return None
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
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
