"""How the workflow is wired: what every rule has, what no rule has, and that a configuration stands alone."""

import re
from pathlib import Path

import pytest
from checkout import ROOT

from rankfall.run.plan import make_plan

PRESETS = [ROOT / "config.yaml", *sorted((ROOT / "workflow" / "presets").glob("*.yaml"))]
QUICK = {"smoke", "config"}


def rules() -> dict[str, str]:
    """Name -> text of each rule outside the Snakefile."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))
    parts = re.split(r"^rule (\w+):$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize(
    "path", [pytest.param(one, id=one.stem, marks=[pytest.mark.long] * (one.stem not in QUICK)) for one in PRESETS]
)
def test_presets_are_valid_and_keep_to_their_own_folder(path: Path) -> None:
    plan = make_plan(path)
    assert plan.cells or all(measure.needs != "cells" for measure in plan.measures.values())
    assert plan.figures
    assert plan.config.results == ("results" if path.name == "config.yaml" else f"results/{path.stem}")
