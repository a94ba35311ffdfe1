"""Guards the comparison of two runs: rows are matched by specification whatever their keys, and nothing that differs goes unsaid,
processors of other kinds included."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from rankfall import cli
from rankfall.report import tables
from rankfall.report.processors import describe_mixture, find_kinds, find_kinds_of_run, join_processors
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
    (difference,) = compare_runs(one, other)["residuals"]
    assert (difference.column, difference.rows, difference.of) == ("value", 1, 4)
    assert difference.largest == pytest.approx(1e-6, rel=1e-3)
    assert "seed=1, layer=1" in difference.what
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
    result = compare_runs(run(tmp_path / "a"), run(tmp_path / "b", **change))["residuals"]
    assert any(one.column == column and what in one.what for one in result)


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
    names = {"architecture": "SAN", "task": "sorting", "training": "init"}
    score = names | {"variant": "", "setting": "sorting, init, depth 2", "depth": 2}
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


ZEN = "AMD EPYC, family 25 model 17, AVX512"
XEON = "Intel Xeon Platinum 8481C, family 6 model 143, AVX512"


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ([ZEN, ZEN], 1),
        ([ZEN, ZEN.replace("EPYC", "EPYC 9654 96-Core")], 1),  # of one kind: only the name differs
        ([ZEN, ZEN.replace("AVX512", "AVX2")], 2),
        ([join_processors(ZEN, XEON)], 2),
        ([join_processors(ZEN, ZEN), None, float("nan")], 1),
        ([None], 0),
    ],
)
def test_kinds_are_told_apart_by_family_model_and_vectors(given: list, count: int) -> None:
    assert len(find_kinds(given)) == count
    sentence = describe_mixture(pd.DataFrame({"processor": given}))
    assert bool(sentence) == (f"from {count} kinds of processors (family" in sentence) == (count > 1)


def a_run(folder: Path, *processors: str, free: str = "") -> Path:
    (folder / "tables").mkdir(parents=True)
    rows = [
        {"key": str(seed), "task": "t", "architecture": "a", "training": "i", "seed": seed, "status": "done", "processor": one}
        for seed, one in enumerate(processors)
    ]  # fmt: skip
    pd.DataFrame(rows).to_parquet(folder / "tables" / "cells.parquet")
    about = tables.provenance() | ({"processor": free} if free else {})
    count = {"model": "m", "depth": 1, "heads": 1, "length": 0, "log10_paths": 0.0, "proportion": 1.0}
    tables.write("path_counts", [count], folder / "tables" / "path_counts.parquet", about)
    return folder


def test_a_comparison_of_runs_names_their_processors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zen, other, xeon = (a_run(tmp_path / name, one, free=one) for name, one in (("a", ZEN), ("b", ZEN), ("c", XEON)))
    mixed = a_run(tmp_path / "d", ZEN, free=XEON)
    assert find_kinds_of_run(mixed / "tables") == ["family 25 model 17, AVX512", "family 6 model 143, AVX512"]
    assert cli.main(["compare", str(zen), str(other)]) == 0
    assert "processors" not in capsys.readouterr().out
    assert cli.main(["compare", str(zen), str(xeon)]) == 0  # numbers are equal all the same
    both = "family 25 model 17, AVX512 in the first run, family 6 model 143, AVX512 in the second"
    assert both in capsys.readouterr().out
