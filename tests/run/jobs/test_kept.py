"""Guards rows that are kept by item: an edit of a component measures again what is made of it and nothing else, and no key is too short."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from plans import changed

from rankfall import cli
from rankfall.report.tables import read_frame

NORMALISER = '''
def own(logits):
    """Weights that sum to one."""
    return (logits * {factor}).softmax(-1)
'''
MEASURE = """
import torch
from rankfall import components
from rankfall.design import Component

TABLE = "path_counts"
NEEDS = "nothing"
PARTS = {"normalisers": "normaliser"}

def own(context, *, normalisers: list[str | dict] = [], length: int = 3):
    def rows_of(one):
        with open("calls", "a") as calls:
            calls.write(one.name + " ")
        weights = components.bound("normaliser", USED or one)(torch.arange(float(length)))
        return [{"model": one.name, "depth": 1, "heads": 1, "length": length, "log10_paths": float(weights[-1]), "proportion": 0.5}]

    return context.rows(map(Component.parse, normalisers), rows_of, made_of=lambda one: [("normaliser", one)])
"""
NONE = "\nUSED = None\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A measure of two normalisers."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keptlab.py").write_text(MEASURE + NONE)
    for name in "ab":
        (tmp_path / f"keptlab_{name}.py").write_text(NORMALISER.format(factor=1))
    return tmp_path


def measure(names: str = "ab", results: str = "results", **options: Any) -> int:
    for module in ("keptlab", "keptlab_a", "keptlab_b"):
        sys.modules.pop(module, None)
    Path("calls").write_text("")
    own = {"measure": "keptlab:own", "normalisers": [f"keptlab_{name}:own" for name in names]} | options
    Path("own.json").write_text(json.dumps(changed("measures", {"own": own})))
    return cli.main(
        ["measure", "--config", "own.json", "--results", results, "--measure", "own", "--out", f"{results}.parquet"]
    )


def called(folder: Path) -> str:
    """Of which normalisers rows were computed."""
    return "".join(name.removeprefix("keptlab_")[0] for name in (folder / "calls").read_text().split())


@pytest.mark.long
def test_an_edit_measures_what_is_made_of_it(lab: Path) -> None:
    assert measure() == 0
    assert called(lab) == "ab"
    (lab / "keptlab_b.py").write_text(NORMALISER.format(factor=2))
    assert measure() == 0
    assert called(lab) == "b"
    assert measure(results="other") == 0  # from nothing
    assert called(lab) == "ab"
    edited, anew = (read_frame(lab / f"{name}.parquet", "path_counts") for name in ("results", "other"))
    assert edited.equals(anew) and edited.log10_paths.nunique() == 2


@pytest.mark.long
def test_what_an_item_depends_on_is_in_its_key(lab: Path) -> None:
    assert measure("a") == 0
    assert measure("ba") == 0  # a choice of items
    assert called(lab) == "b"
    assert measure(length=4) == 0  # an option that is more than that
    assert called(lab) == "ab"
    (lab / "keptlab.py").write_text(MEASURE.replace("0.5", "0.25") + NONE)  # the measure's own code
    assert measure() == 0
    assert called(lab) == "ab"


def test_an_item_cannot_use_what_it_is_not_made_of(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Although the key of the whole measure has it."""
    (lab / "keptlab.py").write_text(MEASURE + '\nUSED = Component("keptlab_b:own")\n')
    assert measure("b") == 0
    assert measure("ba") == 2
    assert "runs keptlab_b.py, which no key knows, so nothing is kept" in capsys.readouterr().err


@pytest.mark.long
def test_options_of_what_an_item_is_made_of_are_in_its_key(lab: Path) -> None:
    """Also where items are places in a list, and not its components."""
    text = MEASURE.replace("map(Component.parse, normalisers)", "range(len(normalisers))").replace(
        "rows_of(one)", "rows_of(place)"
    )
    text = text.replace("with open", "one = Component.parse(normalisers[place])\n        with open")
    text = text.replace('one: [("normaliser", one)]', 'place: [("normaliser", Component.parse(normalisers[place]))]')
    (lab / "keptlab.py").write_text(text.replace('"length": length', '"length": one.options["power"]') + NONE)
    for name in "ab":
        text = NORMALISER.replace("(logits)", "(logits, *, power: int = 1)").format(factor="power")
        (lab / f"keptlab_{name}.py").write_text(text)
    own = [{"name": f"keptlab_{name}:own", "power": power} for name, power in (("a", 1), ("a", 2), ("b", 1))]
    assert measure(normalisers=own[:1]) == 0
    assert measure(normalisers=own[1:]) == 0
    assert called(lab) == "ab"
    assert measure(normalisers=own[::-1]) == 0
    assert called(lab) == "baa"  # at other places
