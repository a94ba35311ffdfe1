"""What is in a file, as a hash of all its bytes. A large one is read once: its hash is remembered for the state that the file is in.

The state is size, inode, and the times of the last change of content and of anything at all (`ctime`, which no program can set back, so
`touch -r` and unpacked archives do not look like what was there before). A file that was changed just now may change again without
another time to show for it, and is read each time until it has settled.

Hashes of large files are kept for other processes in the user's cache folder ($XDG_CACHE_HOME or ~/.cache): a plan is made by
every job, and they all ask for the same weights. Not in the results, since the hash belongs to the file, whichever results it is used for,
and planning writes nothing there. Where the folder cannot be written, every process reads for itself. One small file for each large one,
replaced as a whole, so that any number of processes may share the folder.
"""

import functools
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rankfall.disk import StoreError, atomic, odd
from rankfall.errors import RankfallError

LARGE = 2**24  # bytes; reading fewer takes no longer than a hundredth of a second or two
SETTLED = 2.0  # seconds; the coarsest clock of a file system
ATTEMPTS = 3
ENTRY = re.compile(r"(\d+ \d+ -?\d+ -?\d+) ([0-9a-f]{64})\n")

State = tuple[int, int, int, int]


def hashed(path: Path) -> str:
    """SHA-256 of all that is in a file, in hex; raises OSError, or `RankfallError` for what is no file or changes all the time."""
    what = odd(path)
    if what is not None:
        raise RankfallError(f"{path}: is {what}, not a file")
    for _ in range(ATTEMPTS):
        state = _state(path)
        settled = time.time() - max(state[2:]) / 1e9 > SETTLED
        found = _remembered(path.absolute(), state) if settled else _read(path)
        if _state(path) == state:
            return found
    raise RankfallError(f"{path}: changes while it is read")


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name within the folder and path of every file, sorted, but for hidden and compiled ones. Links are followed, into each folder once:
    they may lead in a circle."""
    return iter(sorted(_walk(folder)))


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_fail):
        stat = os.stat(place)
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "__pycache__")
        for name in names:
            path = Path(place, name)
            if name[0] != "." and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _fail(error: OSError) -> None:
    raise error


def _state(path: Path) -> State:
    stat = os.stat(path)
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


@functools.lru_cache(maxsize=4096)
def _remembered(path: Path, state: State) -> str:
    if state[0] < LARGE:
        return _read(path)
    entry = _entry(path)
    written = " ".join(map(str, state))
    known = _known(entry) if entry else None
    if known is not None and known[0] == written:
        return known[1]
    found = _read(path)
    if entry is not None and _state(path) == state:
        with suppress(StoreError), atomic(entry) as file:
            file.write(f"{written} {found}\n".encode())
    return found


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(path: Path) -> Path | None:
    """Where the hash of this file is remembered; None without a home."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    name = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:32]
    return cache / "rankfall" / "contents" / name


def _known(entry: Path) -> tuple[str, str] | None:
    """State and hash; nothing where there is no entry, or something else."""
    try:
        if odd(entry) is not None:
            return None
        found = ENTRY.fullmatch(entry.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return (found[1], found[2]) if found else None
