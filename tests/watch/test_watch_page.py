"""The page of a watched run: every curve is of the table, and `rankfall open` makes it, or says in one line why not."""

import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from watched import gpt, train

import rankfall
from rankfall import cli
from rankfall.commands import open as opening
from rankfall.report.style import apply_style, canvas
from rankfall.watch import read_table
from rankfall.watch.columns import CURVES, SCHEMA
from rankfall.watch.page import TITLES, draw_layers, draw_steps, found, last_log, page_of, some, spread_widely


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("watched") / "run.parquet"
    _, watcher = train(gpt(), 5, lambda model: rankfall.watch(model, every=2, to=path))
    watcher.close()
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures take seconds, and one test has them all."""
    monkeypatch.setattr("rankfall.watch.page.picture", lambda rows, column: f"<i>{column}</i>")


@pytest.fixture
def table(run):
    return read_table(run).to_pandas()


def test_curves_are_of_the_table(table):
    with apply_style():
        _, ((steps, layers),) = canvas(1, 2, 7, 3)
        draw_steps(steps, table, "residual")
        draw_layers(layers, table, "residual")
    drawn = {line.get_label(): line.get_ydata() for line in steps.lines if not line.get_label().startswith("_")}
    assert list(drawn) == ["0", "1", "2", "3"]
    for layer, values in drawn.items():
        assert list(values) == list(table[table.layer == int(layer)].residual)
    assert [line.get_label() for line in layers.lines] == ["step 1", "step 2", "step 4"]
    assert list(layers.lines[-1].get_ydata()) == list(table[table.step == 4].residual)


def test_the_page_has_every_picture_once_and_loads_nothing(table):
    text = page_of(table, "run.parquet")
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == len(CURVES)
    for one in pictures:
        ElementTree.fromstring(one)
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= {*names, "main"}
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text) and "@import" not in text
    assert all(title in text for title in TITLES.values())


def test_what_is_said_stands_in_the_table(table):
    last = table[table.step == 4]
    first, least = table.iloc[3].residual, last.loc[last.residual.idxmin()]
    said = found(table)
    assert said[0] == f"Residual of layer 3: {first:.3g} at step 1, {last.iloc[-1].residual:.3g} at step 4."
    assert (
        f"least at layer {least.layer}: {least.residual:.3g}, beside {last.iloc[0].residual:.3g} at layer 0" in said[1]
    )
    rounded = found(table.assign(residual_floor=True))
    assert rounded[2].startswith("That is rounding of float32")
    assert all(f"<td>{value:.4g}</td>" in last_log(table) for value in last.residual)


def test_what_was_not_measured_has_its_reason(table, undrawn):
    lost = table.assign(
        **dict.fromkeys(("entropy", "largest_share", "first_share"), float("nan")),
        attention_reason="no softmax <was> seen",
    )
    text = page_of(lost, "run.parquet")
    assert text.count("No number: no softmax &lt;was&gt; seen.") == 3


def test_axes_are_logarithmic_where_numbers_differ_much():
    given = ([1.0, 29.0], [1.0, 31.0], [0.0, 31.0], [-1.0, 31.0], [float("nan"), 1.0, 31.0])
    assert [spread_widely(pd.Series(one)) for one in given] == [False, True, False, False, True]


def test_the_last_run_of_a_file_is_shown(table, undrawn):
    both = pd.concat([table.assign(run=0, block="older"), table.assign(run=1)])
    text = page_of(both, "run.parquet")
    assert "The file has 2 runs; this is the last." in text and "older" not in text


def test_of_many_layers_some_are_drawn():
    assert some(range(5), 13) == [0, 1, 2, 3, 4]
    assert some(range(25), 13) == list(range(0, 25, 2))


def test_open_makes_the_page(run, tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.setattr(opening, "has_screen", lambda: False)
    assert cli.main(["open", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}\n"
    assert "Effective rank" in (tmp_path / "page.html").read_text()
    assert cli.main(["open", str(run)]) == 0
    assert run.with_suffix(".html").is_file()


@pytest.mark.parametrize(
    ("name", "said"), [("none", "is no file"), ("other", "is no table of a watched run"), ("empty", "has no rows yet")]
)
def test_what_is_no_run_is_one_line(name, said, tmp_path, capsys):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    import pyarrow.parquet as pq

    pq.write_table(SCHEMA.empty_table(), tmp_path / "empty.parquet")
    assert cli.main(["open", str(tmp_path / f"{name}.parquet")]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
