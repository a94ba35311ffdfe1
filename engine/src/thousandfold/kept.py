"""Files in the user's cache folder, shared by processes. Each has the digest of its content; a damaged file counts as missing."""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from thousandfold.disk import cache_home, write_whole

DAY = 86_400.0  # seconds; the time of a file's last use is noted once a day


def read_kept(folder: str, name: str) -> bytes | None:
    """Return the cached content with this name, or None if it is missing or damaged."""
    path = path_of(folder, name)
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


def keep(folder: str, name: str, content: bytes) -> None:
    """Cache content for other processes, if the cache folder is writable."""
    path = path_of(folder, name)
    if path is not None:
        with suppress(OSError):
            write_whole(path, digest_of(content) + b"\n" + content)


def path_of(folder: str, name: str) -> Path | None:
    home = cache_home()
    return None if home is None else home / folder / name


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
