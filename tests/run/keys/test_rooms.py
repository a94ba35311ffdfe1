"""Guards what may be in a key: each stage's code lies in the rooms whose business its numbers are, and nowhere else. What is imported
only to say something, to schedule or to store would make results stale whenever it is edited."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rankfall import components
from rankfall.quantity_files import LISTS, OF_A_STUDY, STUDIES
from rankfall.run.plan.cells import DATA_ROOTS, TRAIN_ROOTS
from rankfall.run.plan.entries import MEASURE_ROOTS
from rankfall.run.snakemake.jobs import ROW_ROOTS, TABLE_ROOTS
from rankfall.sources.fingerprint import Sources

PACKAGE = Path(components.__file__).parent
PLAIN = {"__init__.py", "annotations.py", "design.py", "series.py", "random_streams.py"}
DATA = PLAIN | {"tasks", "texts.py"}
CELLS = DATA | {"nets", "train"}
MEASURES = CELLS | {"measure", "models", "streams", "filters.py"}
REPORT = PLAIN | {"report", "disk.py", "filters.py"}
ROOMS = {"measure": MEASURES, "task": DATA} | {kind: REPORT for kind in OF_A_STUDY if kind != "measure"}
# A measure of tables computes with what stands in them, so it may read how they are declared.
OF_TABLES = {
    "reproduction",
    "scorecard",
    "claims",
    "prediction",
    "prediction_scores",
    "census",
    "census_wide",
    "cost",
}
ONE_FILE = {"claims", "census_wide"}  # what is shown of these lies in the file of the measure, and follows it
# In the folder of a quantity: of no measure's numbers.
SHOWN = {"shown.py", "figure.py"}


def stages() -> Iterator[tuple[str, tuple[str, ...], set[str]]]:
    """(name, modules that its numbers come from, rooms that may be in its key)"""
    yield "training", TRAIN_ROOTS, CELLS
    yield "data", DATA_ROOTS, DATA
    yield "tables", (*TABLE_ROOTS, *ROW_ROOTS), REPORT
    for kind in components.KINDS:
        if kind == "table":  # what it declares is in keys, and not the file that declares it
            continue
        for name in components.names(kind):
            location = components.locate(kind, name)
            if location is None:
                continue
            found = components.describe(kind, name) if kind not in LISTS else None
            needs = found.facts.get("NEEDS", "cells") if found else ""
            roots = (location.module, *(MEASURE_ROOTS[needs] if kind == "measure" else ()))
            rooms = (
                ROOMS.get(kind, CELLS)
                | (MEASURES if name in ONE_FILE else set())
                | ({"report", "disk.py", "filters.py"} if name in OF_TABLES else set())
            )
            yield f"{kind} {name}", roots, rooms


@pytest.mark.parametrize(
    ("name", "roots", "rooms"), list(stages()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_stage_depends_on_its_own_rooms_only(name: str, roots: tuple[str, ...], rooms: set[str]) -> None:
    strangers = [file for file in Sources().code_files(roots) if strange(file, name, rooms)]
    assert not strangers, f"{name} is stale whenever one of these is edited"


def strange(file: str, stage: str, rooms: set[str]) -> bool:
    """Whether a file is nothing of a stage's. In a study it is for its name to say."""
    room, last = Path(file).parts[1], Path(file).name
    if file.startswith("thousandfold/"):  # the engine owns SGD, Adam and AdamW
        return not rooms >= CELLS
    if file.startswith("studies/prediction/"):
        return "prediction" not in stage
    if file.startswith("studies/"):
        return last == "experiment.py" if stage.startswith("claim ") else last in ("rule.py", "reading.py")
    if room == "census":
        return "census" not in stage
    if room == "check":
        return not stage.startswith("measure census")
    if room not in STUDIES:
        return room not in rooms
    kind, _, name = stage.partition(" ")
    if kind == "measure":
        return len(Path(file).parts) > 3 and last in SHOWN and name not in OF_TABLES
    return kind not in OF_A_STUDY or (last == "measure.py" and name not in ONE_FILE)


def test_arithmetic_never_names_the_machinery() -> None:
    """Not even for types: nets, training, measures and models know a cell as what `design.py` says of it."""
    rooms = ("nets", "train", "tasks", "measure", "models", *STUDIES)
    machinery = ("run", "commands")
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for room in rooms
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for name in imported(path)
        if name.startswith(tuple(f"rankfall.{other}" for other in machinery))
    ]
    assert not [line for line in found if not line.startswith("train/progress.py")]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
