"""Draw docs/images/house.svg from the code: the rooms of the package, and which imports which.

    python docs/house.py

A room is a folder of src/rankfall, a folder of src/rankfall/run, or a file beside them. A line is an import, at the top of a file or
inside a function, but not for type checkers alone. Imports that follow from two others are not drawn, nor are those of the three lowest
floors, which all rooms use. A room imports only from floors below its own, as tests/test_house.py checks.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

from rankfall.sources.imports import imports_of, without_type_checking

PACKAGE = Path(__file__).parents[1] / "src" / "rankfall"
PICTURE = Path(__file__).parent / "images" / "house.svg"
# From the command line, at the top, to what all rooms may use, at the bottom.
FLOORS = (
    ("cli",),
    ("commands", "api", "testing"),
    ("run/jobs", "run/snakemake", "run/doctor"),
    ("run/forks",),
    ("run/screen",),
    ("run/plan", "run/guards"),
    ("run/keys", "run/store"),
    ("run/objects",),
    ("run/config",),
    ("overview", "watch"),
    ("census",),
    ("use", "position", "identity"),
    ("check", "trial"),
    ("rank",),
    ("measure",),
    ("models", "train"),
    ("streams",),
    ("nets", "tasks"),
    ("report",),
    ("components", "filters", "texts"),
    ("quantity_files",),
    ("descriptions",),
    ("sources",),
    ("modules",),
    ("caches", "project"),
    ("design", "disk", "random_streams", "repeats", "yaml_text"),
    ("annotations", "errors", "processes"),
)
COLOURS = ("#dfe7f5", "#e5f0e3", "#f7ead8", "#f3e1e4", "#e8e2f2", "#dff0f0")


def rooms() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if _room(file)]
    room_of = {_module(file): _room(file) for file in files}
    imports: dict[str, set[str]] = {room: set() for room in room_of.values()}
    for file in files:
        modules = imports_of(_pruned(file), _module(file), file.name == "__init__.py")
        targets = {room_of[name] for name in (*modules.sure, *modules.maybe) if name in room_of}
        imports[_room(file)] |= targets - {_room(file)}
    return imports


def floor_of(room: str) -> int:
    """Return the number of a room's floor from the top. A new room has no floor: decide where it belongs."""
    return next(n for n, floor in enumerate(FLOORS) if room in floor)


def summary(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    file = PACKAGE / room / "__init__.py"
    file = file if file.is_file() else PACKAGE / f"{room}.py"
    text = " ".join((ast.get_docstring(ast.parse(file.read_bytes())) or "").split("\n\n")[0].split())
    return text.split(". ")[0].rstrip(".")


def _pruned(file: Path) -> ast.Module:
    return without_type_checking(ast.parse(file.read_bytes()))


def _module(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(file: Path) -> str:
    first, *rest = file.relative_to(PACKAGE).parts
    if first == "run":
        first, rest = f"run/{rest[0]}", rest[1:]
    return "" if first in ("__init__.py", "run/__init__.py") else first.removesuffix(".py")


def _direct(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports that do not follow from two others."""

    def reach(room: str) -> set[str]:
        return {room}.union(*map(reach, imports[room]))

    return [
        (room, target)
        for room, targets in imports.items()
        for target in sorted(targets)
        if not any(target in reach(other) for other in targets - {target})
    ]


def upward(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports that do not go to a floor below, of which there should be none."""
    return [
        (room, target) for room in imports for target in sorted(imports[room]) if floor_of(target) <= floor_of(room)
    ]


def describe_imports(imports: dict[str, set[str]]) -> str:
    """Return the imports in words. The picture contains them, so that a test sees when it is out of date."""
    return "; ".join(f"{room} imports {', '.join(sorted(imports[room])) or 'nothing'}" for room in sorted(imports))


def draw(imports: dict[str, set[str]], path: Path) -> None:
    """Draw rooms as boxes with their summaries, floor by floor."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "house"  # the same bytes each time
    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text: a fifth of the size, and searches find it
    from matplotlib import pyplot
    from matplotlib.patches import FancyBboxPatch

    figure, axes = pyplot.subplots(figsize=(11, 11.5))
    centre: dict[str, tuple[float, float]] = {}  # of a box
    half: dict[str, float] = {}  # of the width of a box
    for n, floor in enumerate(FLOORS):
        shown = [room for room in floor if room in imports]
        for k, room in enumerate(shown):
            centre[room] = ((k + 0.5) / len(shown) * 10, (len(FLOORS) - 1 - n) * 1.0)
            half[room] = min(1.2, 5 / len(shown) - 0.12)
    lowest = {room for floor in FLOORS[-3:] for room in floor}
    for room, target in _direct(imports):
        if target in lowest:
            continue
        (x, y), (tx, ty) = centre[room], centre[target]
        line: dict[str, Any] = {"arrowstyle": "-|>", "color": "#8a8a8a", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (tx, ty + 0.36), (x, y - 0.36), arrowprops=line)
    for room, (x, y) in centre.items():
        colour = COLOURS[floor_of(room) % len(COLOURS)]
        axes.add_patch(
            FancyBboxPatch(
                (x - half[room], y - 0.3), 2 * half[room], 0.6, "round,pad=0.06", fc=colour, ec="#555", lw=0.8, zorder=3
            )
        )
        axes.text(x, y + 0.2, room, ha="center", va="center", fontsize=10, weight="bold", zorder=4)
        text = "\n".join(textwrap.wrap(textwrap.shorten(summary(room), 125, placeholder=" ..."), int(38 * half[room])))
        axes.text(x, y - 0.1, text, ha="center", va="center", fontsize=5.6, linespacing=1.15, zorder=4)
    axes.set_xlim(-0.1, 10.1)
    axes.set_ylim(-0.6, (len(FLOORS) - 1) * 1.0 + 0.6)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Description": describe_imports(imports)})
    pyplot.close(figure)


if __name__ == "__main__":
    draw(rooms(), PICTURE)
    print(f"wrote {PICTURE}")
