"""The origin of a model type according to the library: the folder of its code, the year of its copyright, its inputs."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path

YEAR = re.compile(r"[Cc]opyright (?:\(c\) )?((?:19|20)\d\d)")
INPUTS = {  # a word in the name of an input -> kind of input
    "input_ids": "text", "pixel": "pictures", "image": "pictures", "input_features": "sound", "input_values": "sound", "audio": "sound",
    "past_values": "series", "inputs_embeds": "states", "hidden_states": "states", "query_embeds": "states", "states": "states",
    "inputs": "states",
}  # fmt: skip


def family(cls: type) -> str:
    """Return the library folder of a configuration or model class: transformers.models.bert -> bert."""
    parts = cls.__module__.split(".")
    return parts[parts.index("models") + 1] if "models" in parts else parts[-1]


def year(cls: type) -> tuple[int | None, str]:
    """Return the year of the copyright line at the top of a class's file, or None and the reason."""
    file = inspect.getsourcefile(sys.modules[cls.__module__])
    if file is None:
        return None, "its class has no source file"
    found = YEAR.search(Path(file).read_text(encoding="utf-8")[:2000])
    return (int(found[1]), "") if found else (None, "the file of its code has no line of copyright with a year")


def kinds_of_inputs(names: Iterable[str]) -> str:
    """Return the kinds of inputs (text, pictures, sound, ...) by their names."""
    found = []
    for name in names:
        kind = next((kind for word, kind in INPUTS.items() if name.startswith(word) or f"_{word}" in name), None)
        if kind is not None and kind not in found:
            found.append(kind)
    return " and ".join(found) or "other"
