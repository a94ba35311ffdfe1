"""Generate the page of the documentation with every field of a configuration and its default, from the types."""

import json
from typing import Any

from rankfall.design import Architecture, Component, Training
from rankfall.run.config.types import Compute, Config, Crossing, Figure, Measure
from rankfall.run.config.values import Entry, model_of

INTRODUCTION = """# Every field of a configuration

One YAML file is the whole configuration. Its sections hold named entries, and each entry has the fields below. This page is generated from
the code. `config.yaml` explains each key where it first appears.

Any field of an architecture is an axis of the grid, and so is `training.lr` or `task.length`: a list of values makes a cell of each. One
line sweeps the learning rate: `training.lr: [1.0e-3, 3.0e-3, 1.0e-2]`. The scorecard then has a setting for each rate, and one more, in
which each architecture has the rate of its highest mean test accuracy. Its label says from how many rates it was chosen.
"""
SECTIONS: dict[str, type[Entry]] = {
    "Sections": Config,
    "`architectures:`": model_of(Architecture),
    "`trainings:`": model_of(Training),
    "`grid:`": Crossing,
    "`measures:`": Measure,
    "`figures:`": Figure,
    "`compute:`": Compute,
}


def document_fields() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for title, entry in SECTIONS.items():
        lines = ["| field | meaning | default |", "|---|---|---|"]
        for name, field in entry.model_fields.items():
            if name != "name" or entry is Config:
                default_in_text = "by default" in (field.description or "")
                default = ("" if default_in_text else "needed") if field.is_required() else write_default(field.default)
                lines.append(f"| `{name}` | {(field.description or '').replace('|', chr(92) + '|')} | {default} |")
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def write_default(value: Any) -> str:
    """Return a default as YAML; an empty text for an empty section."""
    if isinstance(value, Component):
        return f"`{value}`"
    return "" if isinstance(value, Entry) or value in ({}, []) else f"`{json.dumps(value)}`"
