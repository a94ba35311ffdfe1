"""Keep files trials/<key>.json, each of which says that a component was tried and passed. If one is lost, the component is tried again,
within milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankfall.disk import atomic

SUFFIX = ".json"


class Trials:
    def __init__(self, root: Path) -> None:
        self.folder = root / "trials"

    def path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def holds(self, key: str) -> bool:
        """Return whether this trial was passed. A file appears complete or never, so that it is there says all."""
        return self.path(key).is_file()

    def keep(self, key: str, about: Mapping[str, Any]) -> None:
        """Store a trial that was passed. `about` is information for readers only."""
        with atomic(self.path(key)) as handle:
            handle.write(json.dumps(dict(about)).encode())
