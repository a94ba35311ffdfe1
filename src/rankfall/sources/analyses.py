"""A cache of the analyses of modules (their digests and imports) in the user's cache folder, for other processes. Every job builds a plan,
and reading the syntax trees of a few hundred files takes most of that time.

An analysis is stored by the content of the file and the name of the module. The cache file is named by the text of the analysing modules
and the version of Python, which determines syntax trees. It is replaced atomically by the known and the new entries. If two processes write
at the same time, one's entries are lost, and those files are analysed again.
"""

import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home
from rankfall.sources.imports import Imports

ANALYSES = ("rankfall.sources.fingerprint", "rankfall.sources.imports", __name__)
MOST = 5000  # the most entries of a cache file; the latest stay
Analysis = tuple[str, Imports]  # the digest, and the imports
_NEW: dict[str, Analysis] = {}  # analyses that are not stored yet


def analysis(text: bytes, module: str, is_package: bool, analyse: Callable[[], Analysis]) -> Analysis:
    """Return an analysis from the cache. If it is missing, compute it."""
    digest, analyses = hashlib.sha256(f"{module} {is_package}\n".encode() + text).hexdigest(), _load_analyses()
    if digest not in analyses:
        analyses[digest] = _NEW[digest] = analyse()
    return analyses[digest]


def keep() -> None:
    """Store the new analyses for other processes."""
    if (path := _path()) is not None and _NEW:
        with suppress(StoreError), atomic(path) as file:
            file.write(pickle.dumps(dict([*_read(path).items(), *_NEW.items()][-MOST:])))
        _NEW.clear()


@functools.cache
def _load_analyses() -> dict[str, Analysis]:
    """Return all analyses that this process knows. Callers add to them."""
    path = _path()
    if path is None:
        return {}
    use(path)
    return _read(path)


@functools.cache
def _path() -> Path | None:
    """Return the cache file, or None if there is no home folder."""
    home = cache_home()
    if home is None:
        return None
    texts = [Path(sys.modules[name].__file__ or "").read_bytes() for name in ANALYSES]
    return home / "analyses" / hashlib.sha256(repr((sys.version, texts)).encode()).hexdigest()[:24]


def _read(path: Path) -> dict[str, Analysis]:
    """Return the entries of a cache file. A file that is missing or incomplete has none."""
    try:
        return dict(pickle.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, EOFError, pickle.UnpicklingError):
        return {}
