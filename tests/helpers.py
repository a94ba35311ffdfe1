"""Small configurations for tests, expanded by the real plan."""

from typing import Any

from rankfall.plan import make_plan
from rankfall.plan.cell import Cell


def config(**changes: Any) -> dict[str, Any]:
    """One sorting cell, left at initialisation; `architecture`, `training`, `task` and `grid` are merged in."""
    return {
        "name": "test",
        "tasks": {"sorting": {"train": 64, "test": 32, "length": 5, "symbols": 6} | changes.get("task", {})},
        "architectures": {"net": {"depth": 2, "heads": 2, "width": 8} | changes.get("architecture", {})},
        "trainings": {"short": {"epochs": 0, "batch": 10} | changes.get("training", {})},
        "grid": [
            {"task": "sorting", "architecture": "net", "training": "short", "seed": 0} | changes.get("grid", {}),
        ],
    } | {name: changes[name] for name in ("measures", "figures", "compute") if name in changes}


def cells(**changes: Any) -> list[Cell]:
    return list(make_plan(config(**changes)).cells)
