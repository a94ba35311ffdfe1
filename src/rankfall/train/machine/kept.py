"""Files in the user's cache folder, shared by processes. Each has the digest of its content; a damaged file counts as missing."""

import hashlib
from contextlib import suppress
from pathlib import Path

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home, describe_non_file


def read_kept(folder: str, name: str) -> bytes | None:
    """Return the cached content with this name, or None if it is missing or damaged."""
    path = path_of(folder, name)
    try:
        if path is None or describe_non_file(path) is not None:
            return None
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != digest_of(content):
        return None
    use(path)
    return content


def keep(folder: str, name: str, content: bytes) -> None:
    """Cache content for other processes, if the cache folder is writable."""
    path = path_of(folder, name)
    if path is not None:
        with suppress(StoreError), atomic(path) as file:
            file.write(digest_of(content) + b"\n" + content)


def path_of(folder: str, name: str) -> Path | None:
    home = cache_home()
    return None if home is None else home / folder / name


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
