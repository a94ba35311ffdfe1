"""Guards the comparison of two runs: rows are matched by specification whatever their keys, and nothing that differs goes unsaid."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from rankfall import cli
from rankfall.report.runs import as_lines, compare_runs

ROW = {"task": "sorting", "architecture": "SAN", "training": "init", "seed": 0, "status": "done", "reason": ""}


def run(folder: Path, name: str = "residuals", **changes: object) -> Path:
    """Two seeds at two layers; a change is applied to the last row."""
    rows = [
        ROW
        | {"key": f"{folder.name}{seed}", "seed": seed, "layer": layer, "quantity": "residual", "value": 0.5 + layer}
        for seed in (0, 1)
        for layer in (0, 1)
    ]
    rows[-1] |= changes
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(folder / "tables" / f"{name}.parquet")
    return folder


def test_runs_that_differ_in_keys_alone_are_equal(tmp_path: Path) -> None:
    assert compare_runs(run(tmp_path / "a"), run(tmp_path / "b")) == {"residuals": []}


def test_a_number_that_differs_is_named_with_its_row_and_size(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a"), run(tmp_path / "b", value=1.5 * (1 + 1e-6))
    (found,) = compare_runs(one, other)["residuals"]
    assert (found.column, found.rows, found.of) == ("value", 1, 4)
    assert found.largest == pytest.approx(1e-6, rel=1e-3)
    assert "seed=1, layer=1" in found.what
    assert compare_runs(one, other, tolerance=1e-5) == {"residuals": []}


@pytest.mark.parametrize(
    ("change", "column", "what"),
    [
        ({"seed": 7}, "", "only in the first run, such as task=sorting"),
        ({"status": "failed"}, "status", "done and failed"),
        ({"value": None}, "value", "1.5 and nan"),
        ({"extra": 1.0}, "extra", "only the second run has this column"),
    ],
)
def test_whatever_differs_is_said(tmp_path: Path, change: dict, column: str, what: str) -> None:
    found = compare_runs(run(tmp_path / "a"), run(tmp_path / "b", **change))["residuals"]
    assert any(one.column == column and what in one.what for one in found)


def test_tables_without_rows_are_equal(tmp_path: Path) -> None:
    """All cells of both runs had failed: pandas cannot merge two empty tables of texts."""
    for name in "ab":
        path = run(tmp_path / name) / "tables" / "residuals.parquet"
        pq.write_table(pq.read_table(path)[:0], path)
    assert compare_runs(tmp_path / "a", tmp_path / "b") == {"residuals": []}


def test_the_verb_prints_for_people_and_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = str(run(tmp_path / "a")), str(run(tmp_path / "b", value=2.0))
    assert cli.main(["compare", one, one]) == 0
    assert capsys.readouterr().out == "residuals: equal\n"
    assert cli.main(["compare", one, other, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["column"] == "value"


def test_names_that_stand_for_other_cells_are_not_one_specification(tmp_path: Path) -> None:
    """`sorting / soft` of 90 sequences and of 240 were compared as rows of the scorecard, as if an edit had changed them."""
    score = {
        "architecture": "SAN",
        "variant": "",
        "setting": "sorting, init, depth 2",
        "task": "sorting",
        "training": "init",
        "depth": 2,
    }
    for name, options, last, seeds in (("a", 90, 0.5, 2), ("b", 240, 0.6, 2), ("c", 90, 0.7, 3)):
        folder = tmp_path / name / "tables"
        folder.mkdir(parents=True)
        cells = [
            ROW | {"key": f"{name}{seed}", "seed": seed, "depth": 2, "task_component": f"sorting(train={options})"}
            for seed in range(seeds)
        ]
        pd.DataFrame(cells).to_parquet(folder / "cells.parquet")
        pd.DataFrame([score | {"residual_last": last}]).to_parquet(folder / "scorecard.parquet")
    other = compare_runs(tmp_path / "a", tmp_path / "b")["scorecard"]
    assert [one.what.partition(",")[0] for one in other] == ["only in the first run", "only in the second run"]
    (same,) = compare_runs(tmp_path / "a", tmp_path / "c")["scorecard"]
    assert (same.column, same.rows, same.of) == ("residual_last", 1, 1) and "scorecard: 1 difference" in "\n".join(
        as_lines({"scorecard": [same]})
    )
