"""Facts that calling a user's component shows, so that its author need not declare them.

The component is called in a process of its own (`trial/learn.py`), since a plan imports neither torch nor other people's files. The result
is cached in the user's cache folder with the digests of the local files that the process imported. A declared fact always takes precedence.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankfall import __version__
from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home

LEARNED: Mapping[str, tuple[str, ...]] = {  # kind -> facts that a call shows
    "task": ("INPUTS", "TARGETS"),
    "attention": ("PROVIDES", "OFFERS", "IGNORES", "BREAKS"),
    "position": ("TOUCHES", "ADMITS", "PROVIDES", "BREAKS"),
    "normaliser": ("TOUCHES", "PROVIDES"),
    "sentinels": ("COUNT",),
    "block": ("BREAKS", "TOKENWISE"),
    "residual": ("BREAKS",),
}
SECONDS = 120  # for importing and calling a component


@dataclass(frozen=True)
class LearnedFacts:
    """Facts that a call shows, or the reason why there are none."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


def learn(kind: str, name: str, file: Path) -> LearnedFacts:
    """Return what calling a component shows, from the cache if none of its files has changed. A failure is not cached, since its cause may
    be a file that is not there yet; nor is what depends on data (`DATA`)."""
    cached = _cached(kind, name, file)
    if cached is not None and (known := _read(cached)) is not None:
        use(cached)
        return known
    with tempfile.TemporaryDirectory(prefix="rankfall-learn-") as folder:
        out = Path(folder) / "learned.json"
        reason = _call(kind, name, out)
        if not out.is_file():
            return LearnedFacts(reason=reason)
        written: dict[str, Any] = json.loads(out.read_text())
    if cached is not None and not written["reason"] and not written["data"]:
        entry = written | {"files": {path: _digest(Path(path)) for path in written["files"]}}
        with suppress(StoreError), atomic(cached) as handle:
            handle.write(json.dumps(entry).encode())
    return LearnedFacts(written["facts"], written["reason"])


def _call(kind: str, name: str, out: Path) -> str:
    """Call the component in a new process, which writes what it learns to `out`. Return why it did not, if it did not."""
    paths = [path or os.getcwd() for path in sys.path]
    child = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, "-P", "-m", "rankfall.trial.learn", kind, name, str(out)]
    try:
        ended = subprocess.run(command, env=child, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} s"
    return (ended.stderr.strip().splitlines() or [f"its process ended with status {ended.returncode}"])[-1]


def _cached(kind: str, name: str, file: Path) -> Path | None:
    home = cache_home()
    ident = hashlib.sha256(f"{__version__} {kind} {name} {file} {os.getcwd()}".encode()).hexdigest()[:24]
    return None if home is None else home / "learned" / f"{ident}.json"


def _read(path: Path) -> LearnedFacts | None:
    """Return a cached result, or None if there is none or one of its files has changed."""
    try:
        entry = json.loads(path.read_text())
        if any(_digest(Path(file)) != digest for file, digest in entry["files"].items()):
            return None
        return LearnedFacts(entry["facts"], entry["reason"])
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
