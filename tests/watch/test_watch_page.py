"""The page of a watched run: every curve is of the table, and `rankfall open` makes it, or says in one line why not."""

import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from in_browser import browser as browser
from watched import gpt, train_watched

from rankfall import cli
from rankfall.check.bands import bands_of
from rankfall.commands import open as opening
from rankfall.report.style import apply_style, canvas
from rankfall.watch import read_table
from rankfall.watch.alarms import Event
from rankfall.watch.columns import CURVES, SCHEMA
from rankfall.watch.page import (
    BAND_COLOURS,
    MAPPED,
    bands_of_run,
    draw_bands,
    draw_events,
    draw_layers,
    draw_map,
    draw_steps,
    last_log,
    page_of,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("watched") / "run.parquet"
    train_watched(gpt(), 5, to=path)
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures take seconds, and one test has them all."""
    monkeypatch.setattr("rankfall.watch.page.draw_curves", lambda rows, column, bands, events: f"<i>{column}</i>")


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


def test_the_residual_is_drawn_in_the_bands_of_its_direction_and_depth(table):
    bands, of = bands_of_run(table)
    depth, way = table.layer.max(), {"causal": "one way", "bidirectional": "both ways"}[table["mask"].iloc[0]]
    assert [one.when for one in bands] == ["at birth", "after training"] and all(one.when in of for one in bands)
    assert bands == bands_of([f"{way}, attention, {norm}-norm" for norm in ("pre", "post")], depth)
    with apply_style():
        _, ((steps, layers),) = canvas(1, 2, 7, 3)
        draw_bands(steps, layers, table, bands)
    for one, area, span in zip(bands, layers.collections, steps.patches, strict=True):
        outline = area.get_paths()[0].vertices
        for layer in range(depth + 1):
            here = outline[outline[:, 0] == layer][:, 1]
            assert (here.min(), here.max()) == pytest.approx(one.at(layer, depth))
        assert (span.get_y(), span.get_y() + span.get_height()) == pytest.approx((one.low[-1], one.high[-1]), rel=0.2)


def test_maps_are_of_the_table(table):
    with apply_style():
        _, ((axes,),) = canvas(1, 1, 7, 3)
        draw_map(axes, table, "norm")
    (mesh,) = [one for one in axes.collections if one.get_array() is not None]
    assert mesh.get_array().shape == (4, 3)
    expected = [
        [table[(table.layer == layer) & (table.step == step)].norm.item() for step in (1, 2, 4)] for layer in range(4)
    ]
    assert mesh.get_array().tolist() == expected
    assert axes.get_xlim() == (1, 6)  # each log reaches to the next


def test_a_run_without_a_loss_has_no_chart_of_it(table):
    """The model returned no loss, and events stood in an empty chart."""
    rows = table.assign(loss=float("nan"))
    assert draw_events(table, [Event(2, "rank", 1, "text")]).startswith("<figure")
    assert draw_events(rows, [Event(2, "rank", 1, "text")]) == ""


@pytest.mark.long
def test_the_page_has_every_picture_once_and_loads_nothing(table):
    text = page_of(table, "run.parquet")
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == len(CURVES) + len(MAPPED) + 1
    for one in pictures:
        ElementTree.fromstring(one)
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= {*names, "main"}
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text) and "@import" not in text


def test_the_last_log_stands_on_the_page(table):
    assert all(f"<td>{value:.4g}</td>" in last_log(table) for value in table[table.step == 4].residual)


def test_open_makes_the_page(run, tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.setattr(opening, "has_screen", lambda: False)
    assert cli.main(["open", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}\n"
    assert "Effective rank" in (tmp_path / "page.html").read_text()
    assert cli.main(["open", str(run)]) == 0
    assert run.with_suffix(".html").is_file()


@pytest.mark.parametrize(
    ("name", "words"),
    [("none", "is not a file"), ("other", "is not a table of a watched run"), ("empty", "has no rows yet")],
)
def test_what_is_no_run_is_one_line(name, words, tmp_path, capsys):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    import pyarrow.parquet as pq

    pq.write_table(SCHEMA.empty_table(), tmp_path / "empty.parquet")
    assert cli.main(["open", str(tmp_path / f"{name}.parquet")]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.slow
def test_the_bands_are_seen_in_a_browser(browser, table, tmp_path):
    """The page opens without an error, and the pictures of the residual alone have the colours of the bands."""
    (tmp_path / "run.html").write_text(page_of(table, "run.parquet"))
    page, words = browser.new_page(), []
    page.on("console", lambda message: words.append(message.text))
    page.on("pageerror", lambda error: words.append(str(error)))
    page.goto((tmp_path / "run.html").as_uri())
    for name in CURVES:
        fills = page.locator(f"#{name} svg [style*='fill']").evaluate_all(
            "all => all.map(one => getComputedStyle(one).fill)"
        )
        seen = [tuple(map(int, re.findall(r"\d+", one)[:3])) for one in fills]
        for colour in BAND_COLOURS:
            wanted = tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))
            assert (seen.count(wanted) >= 2) == (name == "residual")
    assert page.locator("#residual .note").inner_text().startswith("Shaded: residuals of networks")
    assert words == []
    page.close()
