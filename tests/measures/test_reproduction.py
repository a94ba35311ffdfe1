"""Guards the comparison with published numbers: the files of facts, which of our rows stand beside them, and the verdict."""

from typing import Any

import pandas as pd
import pytest

from rankfall.components import names
from rankfall.errors import RankfallError
from rankfall.measures import reproduction as module
from rankfall.measures.reproduction import beside, published, reproduction
from rankfall.report import tables
from rankfall.report.schema import schema

VALUE = {
    "name": "n",
    "source": "paper",
    "place": "figure",
    "what": "w",
    "kind": "measured",
    "sense": "equal",
    "published": 0.5,
    "tolerance": 0.02,
    "table": "paths",
    "column": "accuracy",
    "where": "task=sorting;kind=path;length=1",
    "by": "training",
}


def ours(**changes: Any) -> pd.DataFrame:
    """Two trainings, two seeds, two repeats; a null length arrives as pandas' nullable integer."""
    rows = [
        {
            "task": "sorting",
            "kind": "path",
            "length": 1,
            "training": t,
            "seed": s,
            "accuracy": a + 0.1 * s + d,
            "status": "done",
        }
        for t, a in (("long", 0.45), ("short", 0.2))
        for s in (0, 1)
        for d in (-0.01, 0.01)
    ]
    rows.append({**rows[0], "kind": "chance", "length": None, "accuracy": 9.0})
    rows.append({**rows[0], "status": "failed", "accuracy": None})
    frame = pd.DataFrame([row | changes for row in rows])
    return frame.astype({"length": pd.Int64Dtype()})


def test_ours_is_the_mean_over_seeds_of_means_within_each() -> None:
    long, short = beside(VALUE, ours())
    assert (long["setting"], short["setting"]) == ("training=long", "training=short")
    assert long["ours"] == pytest.approx(0.5) and long["deviation"] == pytest.approx(0.1 / 2**0.5)
    assert long["seeds"] == 2 and long["difference"] == pytest.approx(0.0, abs=1e-12) and long["holds"]
    assert short["difference"] == pytest.approx(-0.25) and not short["holds"]


@pytest.mark.parametrize(
    ("sense", "expected"), [("equal", [False, False]), ("above", [True, False]), ("below", [False, True])]
)
def test_each_sense(sense: str, expected: list[bool]) -> None:
    value = VALUE | {"sense": sense, "published": 0.4}
    assert [row["holds"] for row in beside(value, ours())] == expected


@pytest.mark.parametrize("frame", [None, ours().iloc[:0], ours(task="hull")])
def test_what_no_run_measures_keeps_its_row(frame: pd.DataFrame | None) -> None:
    (row,) = beside(VALUE, frame)
    assert row["published"] == 0.5 and row["ours"] is None and row["holds"] is None and row["seeds"] == 0


def test_facts_about_a_column_that_is_not_there_are_refused() -> None:
    with pytest.raises(RankfallError, match="published value 'n': table paths has no column layer"):
        list(beside(VALUE | {"where": "layer=1"}, ours()))


def test_the_files_of_facts_are_whole() -> None:
    values = list(published())
    assert len({value["name"] for value in values}) == len(values) > 130
    for value in values:
        assert value["sense"] in ("equal", "above", "below") and value["kind"] in (
            "measured",
            "typed",
            "claimed",
            "exact",
        )
        assert (
            value["source"] in ("paper", "code")
            and value["table"] in module.TABLES
            and value["what"]
            and value["place"]
        )
        if value["table"] in names("table"):
            known = {column.name for column in schema(value["table"]).columns}
            asked = {condition.split("=")[0] for condition in value["where"].split(";")}
            assert asked | {value["column"]} | set(value["by"].split(";")) <= known, value["name"]


def test_published_path_counts_are_binomial() -> None:
    """Share of paths of length k among those that take one of H heads or none in each of L layers."""
    from scipy.stats import binom

    sizes = {"BERT-base": (12, 12), "BERT-large": (24, 16), "T5-11B": (24, 128), "T5-3B": (24, 32), "ViT-H": (32, 16)}
    sizes |= {"GPT-3": (96, 96), "DistilBERT": (6, 12), "MobileBERT": (12, 4), "DeiT-T": (12, 3)}
    found = [value for value in published() if value["table"] == "path_counts"]
    assert len(found) == 10
    for value in found:
        where = dict(condition.split("=") for condition in value["where"].split(";"))
        layers, heads = sizes[where["model"]]
        assert binom.pmf(int(where["length"]), layers, heads / (heads + 1)) == pytest.approx(
            value["published"], abs=5e-4
        )


def test_rows_fit_the_declared_table(tmp_path) -> None:
    path = tmp_path / "reproduction.parquet"
    rows = reproduction(lambda name: None)
    tables.write("reproduction", rows, path, tables.provenance())
    assert len(tables.read(path, "reproduction")) == len(rows) == len(list(published()))
