"""Guards the page's data, its findings and its size, without a browser: what a chart has equals the rows of its table."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from page_tables import LAYERS, about, cell_rows, frames, made_page

from rankfall import components
from rankfall.report import tables
from rankfall.report.page import build
from rankfall.report.page.build import PageInputs, page
from rankfall.report.page.chart import charts
from rankfall.report.page.findings import choose_findings, findings
from rankfall.report.page.question import MOST
from rankfall.report.page.rows import chart_rows, encode, select_missing
from rankfall.report.quantities import STUDIES
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.report.settings import number_variants

COUNT = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module", autouse=True)
def _no_library() -> Iterator[None]:
    """The library of charts takes seconds to make, and is no business of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "bundle", lambda: "library")
        yield


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return made_page(folder, COUNT)


def block(text: str, name: str) -> Any:
    result = re.search(rf'<script type="application/octet-stream" id="data-{name}">([^<]*)</script>', text)
    assert result, name
    return json.loads(zlib.decompress(base64.b64decode(result[1])))


def decoded(data: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: [one["of"][place] for place in one["values"]] if "of" in one else one["values"] for name, one in data["columns"].items()}
    )  # fmt: skip


def test_the_scorecard_and_the_tables_are_in_the_page_as_they_are(text: str, folder: Path) -> None:
    tables = frames(folder / "tables", COUNT)
    cell = [column.name for column in CELL_COLUMNS if column.name != "key"]
    for name, table in tables.items():
        own = table.drop(columns=cell) if schema(name).cells and name != "cells" else table
        result = decoded(block(text, f"table-{name}"))
        pd.testing.assert_frame_equal(
            result.astype(object).where(result.notna(), None),
            own.astype(object).where(own.notna(), None),
            check_dtype=False,
        )
    assert decoded(block(text, "main")["scorecard"]).architecture.tolist() == tables["scorecard"].architecture.tolist()


def test_tables_that_do_not_fit_are_linked(folder: Path) -> None:
    small = made_page(folder, COUNT, most=0)
    assert 'id="data-table-' not in small and "data-csv=" not in small
    assert small.count('href="../tables/') == len(frames(folder / "tables", COUNT))


def test_provenance_is_of_each_cell(text: str) -> None:
    data = block(text, "provenance")
    key = f"{3:024x}"
    about = {name: data["values"][name][place] for name, place in zip(data["fields"], data["cells"][key])}
    assert (about["architecture"], about["training"], about["seed"], about["device"]) == ("SAN", "init", 3, "cpu")
    assert len(data["cells"]) == COUNT and len(data["values"]["code"]) == 1
    assert about["final"] == {"test": {"loss": "nan"}}


def test_nulls_and_infinities() -> None:
    frame = pd.DataFrame(
        {"x": [1.5, float("nan"), float("inf")], "n": pd.array([1, None, 3], dtype="Int64"), "t": ["a", None, "a"]}
    )
    columns = encode(frame)["columns"]
    assert columns["x"]["values"] == [1.5, None, "inf"] and columns["n"]["values"] == [1, None, 3]
    assert [columns["t"]["of"][place] for place in columns["t"]["values"]] == ["a", None, "a"]


def test_findings_are_computed(folder: Path) -> None:
    answers = {finding.question: finding.answer for finding in findings(frames(folder / "tables", COUNT).get)}
    # exp(-l (1 + 0.1 u)) is 0.9 * exp(-6) or less after 6 layers, and below 0.1 from layer 3 on at the latest
    fastest = answers["Which architecture collapses fastest?"]
    assert "(0.657, a tie), least in SAN and transformer" in fastest
    assert "Of 8 kinds of attention layer, 2 cube" in answers["Which attention loses rank, and how fast?"]
    assert answers["Do published numbers hold?"].startswith("1 of 3 comparisons do")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.loads += [value for name, value in attrs if name == "src" or (tag == "link" and name == "href")]
        if tag not in ("meta", "input", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_text_is_closed_escaped_and_loads_nothing(text: str) -> None:
    tags = Tags()
    tags.feed(text)
    assert tags.open == [] and tags.loads == []
    assert "@title@" not in text and not re.search(r"@\w+@</", text)
    assert "All &lt; numbers." in text and 'net <3> & "more"' not in text


@pytest.mark.parametrize("chart", charts(), ids=lambda chart: chart.name)
def test_a_chart_names_columns_that_exist(chart: Any) -> None:
    columns = {column.name for column in schema(chart.table).columns} | {*chart.derive, "setting", "apart"}
    named = {chart.x, chart.y, chart.line, chart.measured, *chart.choose, *chart.where, *chart.most}
    assert named <= columns
    assert chart.study in STUDIES
    assert set(chart.start) <= set(chart.choose)


def test_every_table_has_a_chart() -> None:
    """But the four that the page shows as tables."""
    shown = {"cells", "scorecard", "reproduction", "claims"}
    assert set(components.names("table")) - {chart.table for chart in charts()} - shown == set()
    assert len({chart.name for chart in charts()}) == len(charts())


def test_networks_at_different_settings_are_told_apart() -> None:
    """Networks that differ in an option of their task were averaged as if they were seeds."""
    rows = [row | {"task_component": f"sorting(length={4 + row['seed'] % 2})"} for row in cell_rows(4)]
    cells = number_variants(pd.DataFrame(rows))
    assert build.find_differing_fields(cells) == ["length 4", "length 5", "length 4", "length 5"]
    assert build.find_differing_fields(number_variants(pd.DataFrame(cell_rows(4)))) == [""] * 4
    assert all("apart" in chart.choose for chart in charts() if "training" in chart.choose)


def test_repeats_are_averaged_within_a_network() -> None:
    chart = next(one for one in charts() if one.name == "paths")
    table = pd.DataFrame(
        {"key": "a", "status": "done", "kind": "path", "evaluation": "frozen", "length": 1, "paths": 2,
         "repeat": [0, 1], "accuracy": [0.2, 0.4]}
    )  # fmt: skip
    (row,) = chart_rows(chart, table).itertuples()
    assert row.accuracy == pytest.approx(0.3)


def test_what_a_number_is_made_of_gives_the_number(text: str, folder: Path) -> None:
    """The mean of the networks' numbers is the scorecard's, and the rows' places are those of its table."""
    behind, tables = block(text, "behind"), frames(folder / "tables", COUNT)
    cells, residuals, scores = decoded(block(text, "main")["cells"]), tables["residuals"], tables["scorecard"]
    for name in ("residual_last", "halving_depth", "over_chance"):
        numbers = decoded(behind[name]["networks"]).assign(
            label=lambda rows: [cells.label[place] for place in rows.cell]
        )
        for score in scores[scores[name].notna()].itertuples():
            setting = pd.Series([cells.setting[place] for place in numbers.cell])
            own = numbers[(numbers.label == score.architecture) & (setting == score.setting)].number.dropna()
            assert len(own) == getattr(score, f"{name}_seeds")
            assert own.mean() == pytest.approx(getattr(score, name), rel=1e-12)
    rows = residuals.loc[behind["residual_last"]["rows"]]
    assert set(rows.training) == {"init", "short"} and len(rows) == (COUNT - 1) * LAYERS
    assert [tables["orders"].order[place] for place in behind["order"]["rows"]] == scores.order.tolist()


def test_numbers_stand_beside_what_they_are_compared_with(tmp_path: Path) -> None:
    """Paths beside chance and the whole network, which are rows of their own; accuracies beside the chance of their cell."""
    cells = cell_rows(12)
    base = dict.fromkeys(("evaluation", "length", "paths", "repeat"))
    path = {"kind": "path", "evaluation": "recomputed", "length": 1, "paths": 5, "repeat": 0, "accuracy": 0.4}
    rows = [about(cells[5]) | path, about(cells[5]) | base | {"kind": "chance", "accuracy": 0.25}]
    rows.append(about(cells[5]) | base | {"kind": "whole", "evaluation": "recomputed", "accuracy": 0.9})
    some = {"cells": cells, "paths": rows}
    for name, written in some.items():
        tables.write(name, written, tmp_path / f"{name}.parquet")
    given = PageInputs(
        "levels", list(some), lambda name: tables.read_frame(tmp_path / f"{name}.parquet", name), [], {}, "0"
    )
    charts = {chart["name"]: chart for chart in block(page(given), "main")["charts"]}
    levels = {level["name"]: decoded(level["rows"]).accuracy.tolist() for level in charts["paths"]["beside"]}
    assert levels == {"chance": [0.25], "the whole network": [0.9]}
    assert decoded(charts["accuracy"]["data"]).chance.tolist() == [0.25] * 5


def test_values_that_a_table_lacks_are_told_with_their_reason() -> None:
    chart = next(one for one in charts() if one.name == "residual")
    row = {"key": "a", "status": "done", **chart.where}
    rows = [row | {"layer": 1, "value": 0.5, "value_reason": ""}]
    rows.append(row | {"layer": 2, "value": None, "value_reason": "beyond float64"})
    table = pd.DataFrame(rows)
    assert chart_rows(chart, table).layer.tolist() == [1]
    (lacking,) = select_missing(chart, table).itertuples()
    assert (lacking.layer, lacking.why) == (2, "beyond float64")


def test_the_page_opens_with_five_short_findings(text: str, folder: Path) -> None:
    result = findings(frames(folder / "tables", COUNT).get)
    assert choose_findings(result)[0].study == "rank" and all(len(one.answer.split()) <= MOST for one in result)
    first = text[text.index('id="story"') : text.index("</dl>")]
    assert first.count("<dt>") == min(5, len(result)) and 'id="opening"' in text
