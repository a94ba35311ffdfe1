"""Guards rows that are kept by item: an edit of a component measures again what is made of it and nothing else, and no key is too short."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from plans import changed

from rankfall import cli
from rankfall.report.tables import read_frame

NORMALISER = """
def sharp(logits, *, power: int = 1):
    return (logits * {factor} * power).softmax(-1)
"""
MEASURE = """
import torch
from rankfall import components
from rankfall.design import Component

TABLE = "path_counts"
NEEDS = "nothing"
PARTS = {"normalisers": "normaliser"}
USED, NUMBERED = None, False

def count(context, *, normalisers: list[str | dict] = [], length: int = 3):
    parts = [Component.parse(written) for written in normalisers]
    part_of = lambda item: parts[item] if NUMBERED else item
    def rows_of(item):
        part = part_of(item)
        with open("calls", "a") as calls:
            calls.write(part.name.removeprefix("keptlab_")[0])
        weights = components.bound("normaliser", USED or part)(torch.arange(float(length)))
        return [{"model": part.name, "depth": 1, "heads": part.options["power"], "length": length, "log10_paths": float(weights[-1]),
                 "proportion": 0.5}]

    return context.rows(range(len(parts)) if NUMBERED else parts, rows_of, made_of=lambda item: [("normaliser", part_of(item))])
"""


@pytest.fixture
def measured(lab: Path) -> Path:
    """Write a measure of two normalisers."""
    (lab / "keptlab.py").write_text(MEASURE)
    for name in "ab":
        (lab / f"keptlab_{name}.py").write_text(NORMALISER.format(factor=1))
    return lab


def measure(parts: str, results: str = "results", code: int = 0, **options: Any) -> str:
    """Measure normalisers, each a letter and its power. Return the letters of those whose rows are computed."""
    for module in ("keptlab", "keptlab_a", "keptlab_b"):
        sys.modules.pop(module, None)
    Path("calls").write_text("")
    normalisers = [{"name": f"keptlab_{part[0]}:sharp", "power": int(part[1])} for part in parts.split()]
    entry = {"measure": "keptlab:count", "normalisers": normalisers} | options
    Path("own.json").write_text(json.dumps(changed("measures", {"own": entry})))
    words = ["measure", "--config", "own.json", "--results", results, "--measure", "own", "--out", f"{results}.parquet"]
    assert cli.main(words) == code
    return Path("calls").read_text()


@pytest.mark.long
def test_an_edit_measures_what_is_made_of_it(measured: Path) -> None:
    assert measure("a1 b1") == "ab"
    (measured / "keptlab_b.py").write_text(NORMALISER.format(factor=2))
    assert measure("a1 b1") == "b"
    assert measure("a1 b1", results="other") == "ab"  # from nothing
    edited, anew = (read_frame(measured / f"{name}.parquet", "path_counts") for name in ("results", "other"))
    assert edited.equals(anew) and edited.log10_paths.nunique() == 2


@pytest.mark.long
def test_what_an_item_depends_on_is_in_its_key(measured: Path) -> None:
    assert measure("a1") == "a"
    assert measure("b1 a1") == "b"  # a choice of items
    assert measure("b1 a1", length=4) == "ba"  # an option that is more than that
    (measured / "keptlab.py").write_text(MEASURE.replace("0.5", "0.25"))  # the measure's own code
    assert measure("b1 a1") == "ba"
    (measured / "keptlab.py").write_text(MEASURE.replace("False", "True"))  # items are places in a list
    assert measure("a1") == "a"
    assert measure("a2 b1") == "ab"  # an option of what it is made of


def test_an_item_cannot_use_what_it_is_not_made_of(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Although the key of the whole measure has it."""
    (measured / "keptlab.py").write_text(MEASURE.replace("= None", '= Component("keptlab_b:sharp")'))
    measure("b1")
    measure("b1 a1", code=2)
    assert "runs keptlab_b.py, which no key knows, so nothing is kept" in capsys.readouterr().err
