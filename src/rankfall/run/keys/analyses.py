"""A cache of the analyses of modules (their digests and imports) in the user's cache folder, for other processes. Every job builds a plan,
and reading the syntax trees of a few hundred files takes most of that time.

An analysis is stored by the content of the file and the name of the module. The cache file is named by the text of the analysing modules
and the version of Python, which determines syntax trees. An incomplete cache file counts as missing. It is replaced atomically by the known
and the new entries. If two processes write at the same time, one's entries are lost, and those files are analysed again.
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

ANALYSES = (
    "rankfall.run.keys.fingerprint",
    "rankfall.run.keys.imports",
    __name__,
)
MOST = 5000  # the most entries of a cache file; the latest stay
Analysis = tuple[str, Imports]  # the digest, and the imports
Written = list[Any]  # the same as JSON


def analysis(text: bytes, module: str, is_package: bool, analyse: Callable[[], Analysis]) -> Analysis:
    """Return an analysis from the cache. If it is missing, compute it."""
    ident = hashlib.sha256(f"{module} {is_package}\n".encode() + text).hexdigest()
    known, new = _load_analyses()
    if ident not in known:
        known[ident] = new[ident] = _to_json(analyse())
    return _read(known[ident])


def keep() -> None:
    """Store the new analyses for other processes."""
    (_, new), path = _load_analyses(), _path()
    if not new or path is None:
        return
    kept = _from(path)
    if not new.keys() <= kept.keys():
        text = json.dumps(dict([*kept.items(), *new.items()][-MOST:]))
        with suppress(StoreError), atomic(path) as file:
            file.write(f"{_digest(text)}\n{text}".encode())
    new.clear()


@functools.cache
def _load_analyses() -> tuple[dict[str, Written], dict[str, Written]]:
    """Return all analyses that this process knows, and those that are new. Callers add to both."""
    path = _path()
    if path is not None:
        use(path)
    return (_from(path) if path else {}), {}


@functools.cache
def _path() -> Path | None:
    """Return the cache file, or None if there is no home folder."""
    home = cache_home()
    if home is None:
        return None
    texts = [text_of(name) for name in ANALYSES]
    made_by = hashlib.sha256(repr((sys.version, texts)).encode()).hexdigest()[:24]
    return home / "analyses" / f"{made_by}.json"


def text_of(module: str) -> bytes:
    """Return the source of a module that analyses."""
    return Path(sys.modules[module].__file__ or "").read_bytes()


def _from(path: Path) -> dict[str, Written]:
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
        return dict(json.loads(text)) if digest == _digest(text) else {}
    except (OSError, ValueError):
        return {}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _to_json(found: Analysis) -> Written:
    digest, imports = found
    return [digest, *(sorted(value) if isinstance(value, set) else value for value in vars(imports).values())]


def _read(entry: Written) -> Analysis:
    digest, sure, maybe, starred, listed, dynamic, needed = entry
    calls = [(line, text) for line, text in dynamic]
    return digest, Imports(sure, {*maybe}, {*starred}, listed, calls, needed)
