"""A cache of the analyses of modules (their digests and imports) in the user's cache folder, for other processes. Every job builds a plan,
and reading the syntax trees of a few hundred files takes most of that time.

An analysis is stored by the content of the file and the name of the module. The cache file is named by the text of the analysing modules
and the version of Python, which determines syntax trees. It is replaced atomically by the known and the new entries. If two processes write
at the same time, one's entries are lost, and those files are analysed again.
"""

import functools
import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home
from rankfall.run.keys.imports import Imports

ANALYSES = ("rankfall.run.keys.fingerprint", "rankfall.run.keys.imports", __name__)
MOST = 5000  # the most entries of a cache file; the latest stay
Analysis = tuple[str, Imports]  # the digest, and the imports


def analysis(text: bytes, module: str, is_package: bool, analyse: Callable[[], Analysis]) -> Analysis:
    """Return an analysis from the cache. If it is missing, compute it."""
    ident = hashlib.sha256(f"{module} {is_package}\n".encode() + text).hexdigest()
    known, new = _load_analyses()
    if ident not in known:
        digest, imports = analyse()
        fields = (sorted(value) if isinstance(value, set) else value for value in vars(imports).values())
        known[ident] = new[ident] = [digest, *fields]
    digest, sure, maybe, starred, listed, dynamic, needed = known[ident]
    calls = [(line, call) for line, call in dynamic]
    return digest, Imports(sure, {*maybe}, {*starred}, listed, calls, needed)


def keep() -> None:
    """Store the new analyses for other processes."""
    (_, new), path = _load_analyses(), _path()
    if path is None or not new:
        return
    stored = _read(path)
    if not new.keys() <= stored.keys():
        with suppress(StoreError), atomic(path) as file:
            file.write(json.dumps(dict([*stored.items(), *new.items()][-MOST:])).encode())
    new.clear()


@functools.cache
def _load_analyses() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all analyses that this process knows, as JSON, and those that are new. Callers add to both."""
    path = _path()
    if path is None:
        return {}, {}
    use(path)
    return _read(path), {}


@functools.cache
def _path() -> Path | None:
    """Return the cache file, or None if there is no home folder."""
    home = cache_home()
    if home is None:
        return None
    texts = [Path(sys.modules[name].__file__ or "").read_bytes() for name in ANALYSES]
    name = hashlib.sha256(repr((sys.version, texts)).encode()).hexdigest()[:24]
    return home / "analyses" / f"{name}.json"


def _read(path: Path) -> dict[str, Any]:
    """Return the entries of a cache file. A file that is missing or incomplete has none."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}
