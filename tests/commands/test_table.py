"""Guards `rankfall table NAME` and `rankfall open`: what is exported is the table, in the form that was asked for."""

import io
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankfall import cli
from rankfall.commands import open as opening
from rankfall.report import tables

ROW: dict[str, Any] = {
    "task": "sorting",
    "seed": 0,
    "data_key": "a",
    "split": "test",
    "samples": 3,
    "length": 5,
    "size_in": 6,
    "size_out": 6,
}
QUOTED = {"task": 'a "quoted", task', "seed": None, "data_key": "b", "chance": math.nan}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [ROW | {"chance": 1 / 3}, ROW | QUOTED, ROW | {"split": "train", "chance": None}]
    tables.write("datasets", rows, tmp_path / "tables" / "datasets.parquet", {"made": "digest"})
    return tmp_path


def table(results: Path, *words: str) -> int:
    return cli.main(["table", *words, "--results", str(results)])


def test_csv_on_the_screen_is_the_table(results: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """All digits, quoted text, and a null is an empty field where NaN is written out."""
    assert table(results, "datasets", "--csv") == 0
    text = capfdbinary.readouterr().out.decode()
    printed = pd.read_csv(io.StringIO(text))
    expected = tables.read_frame(results / "tables" / "datasets.parquet")
    assert list(printed.columns) == list(expected.columns)
    assert list(printed.task) == list(expected.task)
    assert printed.chance.dropna().tolist() == [1 / 3]
    assert [sum(line.endswith(end) for line in text.splitlines()) for end in (",nan,", ",,")] == [1, 1]


def test_chosen_columns_are_printed_as_latex_and_csv(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--columns", "task, chance"]
    assert table(results, "datasets", "--latex", *chosen) == 0
    lines = capsys.readouterr().out.splitlines()
    assert r"\begin{tabular}{lr}" in lines and r"task & chance \\" in lines
    assert {
        r"sorting & $0.3333$ \\",
        r"sorting &  \\",
        r"a \textquotedbl{}quoted\textquotedbl{}, task & -- \\",
    } <= set(lines)
    assert table(results, "datasets", "--csv", *chosen) == 0
    assert capsys.readouterr().out.splitlines()[0] == '"task","chance"'
    assert table(results, "datasets", *chosen) == 0
    assert "size_in" not in capsys.readouterr().out
    for words in (["--columns", "chanc"], ["--latex"]):
        assert table(results, "datasets", *words) == 2
        error = capsys.readouterr().err.splitlines()
        assert len(error) == 2 and "task, seed, data_key, split" in error[1]


def test_a_table_that_is_not_there_is_named_with_the_nearest(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert table(results, "dataset", "--csv") == 2
    assert "did you mean 'datasets'" in capsys.readouterr().err
    assert table(results / "none", "datasets") == 2
    assert "pass --results FOLDER" in capsys.readouterr().err


def test_a_page_is_opened_where_there_is_a_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert cli.main(["open", "--results", str(tmp_path)]) == 2
    assert "`make run` writes it" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)  # a project, which has no Makefile
    for verb in (["open"], ["claims"]):
        assert cli.main([*verb, "--results", str(tmp_path)]) == 2
        message = capsys.readouterr().err
        assert "`rankfall run`" in message and "make run" not in message
    page = tmp_path / "report" / "index.html"
    page.parent.mkdir()
    page.write_text("<html>")
    monkeypatch.setattr(opening, "has_screen", lambda: False)
    assert cli.main(["open", "--results", str(tmp_path)]) == 0
    assert (capsys.readouterr().out, opened) == (f"{page}\n", [])
    monkeypatch.setattr(opening, "has_screen", lambda: True)
    assert cli.main(["open", "--results", str(tmp_path)]) == 0
    assert opened == [page.as_uri()]
