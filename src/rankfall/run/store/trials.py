"""Files trials/<key>.json, each of which says that a component was tried and passed. If a file is lost or damaged, the component is tried
again, within milliseconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankfall.disk import atomic, describe_non_file

SUFFIX = ".json"


class Trials:
    def __init__(self, root: Path) -> None:
        self.folder = root / "trials"

    def path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def holds(self, key: str) -> bool:
        """Return whether this trial was passed. False if the file cannot be read."""
        path = self.path(key)
        try:
            kept = None if describe_non_file(path) else json.loads(path.read_bytes())
            return kept is not None and kept["key"] == key and kept["seal"] == _seal(key, kept["about"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return False

    def keep(self, key: str, about: Mapping[str, Any]) -> None:
        """Store a trial that was passed. `about` is information for readers only."""
        kept = {"key": key, "about": dict(about), "seal": _seal(key, about)}
        if describe_non_file(self.path(key)):  # not written by the store, so not replaced
            return
        with atomic(self.path(key)) as handle:
            handle.write(json.dumps(kept).encode())


def _seal(key: str, about: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([key, about], sort_keys=True).encode()).hexdigest()
