"""Guards what `rankfall claims` prints of one claim: its figure, and the rows that its verdict rests on."""

import argparse
from pathlib import Path

import pandas as pd
import pytest

from rankfall.commands import claims
from rankfall.commands._planned import add_arguments
from rankfall.errors import RankfallError
from rankfall.report import tables

ROW = {"quantity": "spread, by layer", "line": "a", "x": 1.0, "value_reason": None}
EVIDENCE = [ROW | {"claim": name, "seed": seed, "value": 0.5 + seed} for name in ("deep", "wide") for seed in (0, 1)]
TEXTS = (
    "says",
    "paper",
    "link",
    "seen",
    "setting",
    "threshold",
    "changed",
    "said",
    "extends",
    "wants",
    "shown",
    "cells",
    "defects",
    "study",
)
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
    rows = {"claims": [CLAIM | {"claim": name} for name in ("deep", "wide")], "evidence": EVIDENCE}
    for name, of in rows.items():
        (tmp_path / "tables").mkdir(exist_ok=True)
        tables.write(name, of, tmp_path / "tables" / f"{name}.parquet")
    (tmp_path / "figures").mkdir()
    pd.DataFrame(EVIDENCE).query("claim == 'deep'").to_csv(tmp_path / "figures" / "scales.csv", index=False)
    (tmp_path / "figures" / "law.csv").write_text("layer,value\n1,2\n")
    return tmp_path


def run(results: Path, *words: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, claims.ARGUMENTS)
    assert claims.run(parser.parse_args([*words, "--results", str(results)])) == 0


def test_a_claim_names_its_figure(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(results, "deep")
    assert f"figure: {results / 'figures' / 'scales.png'}\nrows: rankfall claims deep --rows" in capsys.readouterr().out
    run(results, "wide")
    assert "figure:" not in capsys.readouterr().out


def test_the_rows_of_a_claim_are_its_own(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(results, "wide", "--rows")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "quantity,line,x,seed,value,value_reason"
    assert said[1:] == ['"spread, by layer",a,1.0,0,0.5,', '"spread, by layer",a,1.0,1,1.5,']


def test_rows_of_no_claim_are_refused(results: Path) -> None:
    with pytest.raises(RankfallError, match="--rows needs a claim"):
        run(results, "--rows")
    with pytest.raises(RankfallError, match="did you mean 'deep'"):
        run(results, "deeep", "--rows")
