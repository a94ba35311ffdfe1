"""A small valid configuration to change, and a throw-away component folder to look into."""

import copy
from pathlib import Path
from typing import Any

import pytest

from rankfall.errors import RankfallError
from rankfall.run.plan import Plan, make_plan

VALID: dict[str, Any] = {
    "tasks": {"sorting": {"train": 60, "length": 5}},
    "architectures": {"san": {"residual": "none"}, "full": {"mlp": "gelu", "depth": 3}},
    "trainings": {"short": {"epochs": 2}, "init": {"epochs": 0}},
    "grid": [
        {"task": "sorting", "architecture": ["san", "full"], "training": "short", "depth": [2, 4], "seed": "0..2"}
    ],
    "measures": {"paths": {"counts": [2]}},
    "page": False,
}
DELETED = object()


def changed(path: str, value: Any, config: dict[str, Any] | None = None) -> dict[str, Any]:
    """A copy with the value at a dotted path replaced, added, or (DELETED) taken out."""
    made = copy.deepcopy(config or VALID)
    *steps, last = path.split("/")
    inner: Any = made
    for step in steps:
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    if value is DELETED:
        del inner[last]
    elif isinstance(inner, list):
        inner[int(last)] = value
    else:
        inner[last] = value
    return made


def planned(path: str, value: Any) -> Plan:
    return make_plan(changed(path, value))


def refusal(config: Any) -> str:
    """The message that a configuration is refused with: one line."""
    with pytest.raises(RankfallError) as caught:
        make_plan(config)
    message = str(caught.value)
    assert "\n" not in message
    return message


def component(folder: Path, name: str, text: str) -> Path:
    """A component outside the package: a module of its own in a folder that is on the path."""
    path = folder / f"{name}.py"
    path.write_text(text)
    return path
