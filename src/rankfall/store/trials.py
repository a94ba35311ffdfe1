"""trials/<key>.json: that a component was tried and passed. A file that is lost or damaged costs milliseconds: it is tried again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankfall.disk import atomic, cannot


class Trials:
    def __init__(self, root: Path) -> None:
        self.folder = root / "trials"

    def holds(self, key: str) -> bool:
        """Whether this trial was passed."""
        path = self.folder / f"{key}.json"
        try:
            kept = json.loads(path.read_bytes())
            return bool(kept["key"] == key and kept["seal"] == _seal(kept["key"], kept["about"]))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise cannot("read", path, error) from error
        except (ValueError, LookupError, TypeError):
            return False

    def keep(self, key: str, about: Mapping[str, Any]) -> None:
        """Remember a trial that was passed; `about` is for people."""
        kept = {"key": key, "about": dict(about), "seal": _seal(key, about)}
        with atomic(self.folder / f"{key}.json") as handle:
            handle.write(json.dumps(kept).encode())


def _seal(key: str, about: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([key, about], sort_keys=True).encode()).hexdigest()
