"""Guards what `rankfall claims` prints of one claim: its figure, and the rows that its verdict rests on."""

from pathlib import Path

import pytest

from rankfall import cli
from rankfall.report import tables

ROW = {"quantity": "spread, by layer", "line": "a", "x": 1.0, "value_reason": None}
EVIDENCE = [ROW | {"claim": name, "seed": seed, "value": 0.5 + seed} for name in ("deep", "wide") for seed in (0, 1)]
TEXTS = ("says", "paper", "link", "seen", "setting", "threshold", "changed", "said", "extends", "wants", "shown",
         "cells", "defects", "study")  # fmt: skip
CLAIM = dict.fromkeys(TEXTS, "") | {
    "verdict": "holds",
    "number": 1.0,
    "low": 0.5,
    "high": 1.5,
    "seeds": 2,
    "published": 0,
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    for name, rows in {
        "claims": [CLAIM | {"claim": name, "says": f"It is {name}."} for name in ("deep", "wide")],
        "evidence": EVIDENCE,
    }.items():
        tables.write(name, rows, tmp_path / "tables" / f"{name}.parquet")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "scales.rst").write_text("What decides claims. Deep: It is deep.")
    (tmp_path / "figures" / "law.rst").write_text("The law of collapse.")
    return tmp_path


def run(results: Path, *words: str) -> int:
    return cli.main(["claims", *words, "--results", str(results)])


def test_a_claim_names_its_figure_and_prints_its_own_rows(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(results, "deep") == 0
    figure = results / "figures" / "scales.png"
    assert f"figure: {figure}\nrows: rankfall claims deep --rows" in capsys.readouterr().out
    assert run(results, "wide") == 0
    assert "figure:" not in capsys.readouterr().out
    assert run(results, "wide", "--rows") == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "quantity,line,x,seed,value,value_reason"
    assert rows == ['"spread, by layer",a,1.0,0,0.5,', '"spread, by layer",a,1.0,1,1.5,']


def test_rows_of_no_claim_are_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(results, "--rows") == 2
    assert "--rows needs a claim" in capsys.readouterr().err
    assert run(results, "deeep", "--rows") == 2
    assert "did you mean 'deep'" in capsys.readouterr().err
