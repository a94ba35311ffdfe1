"""Guards that the configuration shown for a cell computes that very cell: its plan has the cell's key, and no other."""

import pytest

from rankfall.report.provenance import provenance
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.yaml_text import load

CONFIG = {
    "tasks": {"sorting": {"train": 60, "length": 5}, "words": {"task": "memorization", "train": 20, "test": 10}},
    "architectures": {
        "served": {"residual": "none"},
        "skip": {"normaliser": {"name": "l2"}, "residual": {"name": "scaled", "scale": 0.1}},
        "gated": {
            "attention": {"name": "gau", "key_width": 8},
            "mlp": "gelu",
            "position": {"name": "rope", "base": 100.0},
        },
    },
    "trainings": {"init": {"epochs": 0}, "short": {"epochs": 2, "lr": 0.01, "clip": 1.0, "schedule": "cosine"}},
}
NAMES = {"task": ["sorting", "words"], "architecture": ["served", "skip", "gated"], "training": ["init", "short"]}
CONFIG["grid"] = [NAMES | {"seed": 3}]
ENGINES = {engine: make_plan(CONFIG | {"compute": {"engine": engine}}) for engine in ("auto", "plain")}
PLAN = ENGINES["auto"]


@pytest.mark.parametrize(
    ("engine", "cell"),
    [*(("auto", cell) for cell in PLAN.cells), ("plain", ENGINES["plain"].cells[0])],
    ids=lambda case: case if isinstance(case, str) else "-".join(case.labels),
)
def test_the_snippet_is_of_this_cell(engine: str, cell: Cell) -> None:
    """By whichever engine it was trained: each makes another key."""
    about = {"status": "done", "reason": "", "device": "cpu", "versions": {"torch": "2"}, "seconds": 1.5}
    text = provenance(cell.key, PLAN.origin(cell) | about)["snippet"]
    again = make_plan(load(text))
    assert [planned.key for planned in again.cells] == [cell.key]
    assert again.cells[0].labels == cell.labels
