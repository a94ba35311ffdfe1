"""The page in a real browser, opened from disk: it loads nothing, says nothing on the console, and its parts work.

Chromium is the system's, driven by Playwright. Where it is not installed these tests are skipped, unless RANKFALL_BROWSER=required.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from in_browser import SIZES, Opened, browser
from page_tables import LAYERS, charted_page, frames, made_page

from rankfall.report.headlines import headlines
from rankfall.report.page.chart import charts
from rankfall.report.ranking import weigh
from rankfall.report.settings import say_setting

pytestmark = pytest.mark.slow
__all__ = ["browser"]
COUNT, MANY = 40, 10_000
LEVELS = {chart.name: {level.name for level in chart.beside} for chart in charts()}  # what numbers are compared with
AGAIN = """async ([name, change]) => {
    const found = window.rankfall.panels.findIndex((one) => one.chart.name === name), panel = window.rankfall.panels[found];
    new Function("panel", "cells", change)(panel, window.rankfall.cells);
    panel.box.querySelector(".controls").replaceChildren();
    const again = (window.rankfall.panels[found] = new panel.constructor(panel.box, panel.chart));
    await again.pending;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    (results / "report").mkdir()
    (results / "report" / "index.html").write_text(made_page(results, COUNT))
    return results


def address_of(folder: Path) -> str:
    return (folder / "report" / "index.html").as_uri()


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Opened]:
    opened = Opened(browser, address_of(folder))
    yield opened
    opened.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_loads_nothing_and_is_as_wide_as_the_window(browser: Any, folder: Path, size: str, theme: str) -> None:
    with Opened(browser, address_of(folder), size, theme) as opened:
        assert {"residual", "orders", "accuracy", "training"} <= set(opened.charts())
        assert set(opened.requests) == {address_of(folder)}
        assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert opened.page.eval_on_selector("nav", "menu => menu.scrollWidth <= menu.clientWidth")


def test_each_chart_shows_the_rows_of_its_table(browser: Any, tmp_path: Path) -> None:
    """All of them, of made-up tables: what is downloaded of what is shown, every seed by itself, is in the table, and nothing else."""
    text, drawn = charted_page(tmp_path)
    path = tmp_path / "index.html"
    path.write_text(text)
    with Opened(browser, path.as_uri()) as opened:
        for name in opened.charts():
            wanted = drawn.pop(name, None)
            if wanted is None:  # of cells and of training
                continue
            box = opened.chart(name)
            if box.locator("[data-mode]").count():
                box.locator("[data-mode]").select_option("each")
                opened.settle(name)
            shown = []
            for row in opened.downloaded(f"#chart-{name} [data-save]"):
                columns = {column: value for column, value in row.items() if column not in LEVELS[name]}
                line, *x, value = list(columns.values())[:-3]
                shown.append((line, *map(written, x), float(value)))
            expected = [(line, *([] if x is None else [written(x)]), value) for line, x, value in wanted]
            assert sorted(shown) == sorted(expected), name
            assert int(box.get_attribute("data-drawn")) == len(wanted), name
    assert drawn == {}


def written(value: Any) -> str:
    """Write a value as a script writes a number."""
    return str(value).removesuffix(".0")


def test_means_and_deviations_over_seeds(opened: Opened, folder: Path) -> None:
    table = frames(folder / "tables", COUNT)["residuals"]
    opened.chart("residual").locator("[data-choose=training]").select_option("init")
    opened.settle("residual")
    for row in opened.downloaded("#chart-residual [data-save]"):
        same = (table.architecture == row["architecture"]) & (table.layer == int(row["layer"]))
        values = table[same & (table.training == "init")].value
        assert float(row["value"]) == pytest.approx(values.mean(), rel=1e-12)
        assert float(row["deviation"]) == pytest.approx(values.std(), rel=1e-9)
        assert int(row["seeds"]) == len(values) == 5


def test_a_mean_is_the_same_on_a_logarithmic_scale(opened: Opened) -> None:
    """Seeds at 0 have no place on it by themselves, and are in the mean all the same; only where all are 0 is there no point."""
    box = opened.chart("residual")
    zeros = (
        "const { cell, layer, value } = panel.chart.data.columns;"
        "const gone = (at) => layer.values[at] > 4 || (layer.values[at] > 2 && cells[cell.values[at]].seed > 1);"
        "value.values.forEach((_, at) => { if (gone(at)) value.values[at] = 0; });"
    )  # from layer 3 on three of five seeds, from layer 5 on all
    opened.page.evaluate(AGAIN, ["residual", zeros])

    def means() -> dict[tuple[str, str], str]:
        rows = opened.downloaded("#chart-residual [data-save]")
        return {(row["architecture"], row["layer"]): row["value"] for row in rows}

    logarithmic = means()
    box.locator("[data-scale]").select_option("linear")
    opened.settle("residual")
    linear = means()
    assert logarithmic == {place: value for place, value in linear.items() if place[1] not in ("5", "6")}


def test_charts_are_drawn_without_being_looked_at(opened: Opened) -> None:
    """Who printed the page or saved it as PDF got white boxes where nobody had scrolled to."""
    drawn = "[...document.querySelectorAll('[data-chart]')].every((box) => box.dataset.drawn)"
    opened.page.wait_for_function(drawn, timeout=60_000)
    assert opened.page.evaluate("scrollY") == 0


def test_most_of_it_is_folded_until_it_is_asked_for(browser: Any, folder: Path) -> None:
    with Opened(browser, address_of(folder), unfold=False) as opened:
        page, height = opened.page, "document.documentElement.scrollHeight / innerHeight"
        more = page.locator("#more")
        assert not more.is_visible() and page.evaluate(height) <= 3
        page.emulate_media(media="print")
        assert not more.is_visible() and more.bounding_box() is None  # who prints gets what is open, not 90 pages
        page.emulate_media(media="screen")
        page.locator("nav a[href='#glossary']").click()
        assert more.is_visible() and page.locator("#unfold").get_attribute("aria-expanded") == "true"
        page.locator("#unfold").click()
        assert not more.is_visible()


def test_two_architectures_are_compared_as_in_the_scorecard(opened: Opened, folder: Path) -> None:
    """The comparison uses the interval of shades and findings, over the seeds that both have."""
    scores = pd.read_parquet(folder / "tables" / "scorecard.parquet").set_index("architecture", drop=False)
    opened.page.locator("#pairs summary").click()
    setting = opened.page.locator("#score-setting").input_value()
    rows = scores[scores.setting.map(say_setting) == setting]
    names = list(rows.architecture)
    assert len(names) > 1
    words = {1.0: "more", -1.0: "less", 0.0: "a tie"}
    for one, other in ((names[0], names[1]), (names[1], names[0])):
        opened.page.locator("#pairs-one").select_option(one)
        opened.page.locator("#pairs-other").select_option(other)
        opened.page.wait_for_function(
            "(name) => document.querySelector('#pairs-table th:nth-child(2)')?.textContent === name", arg=one
        )
        table = opened.page.locator("#pairs-table tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        verdicts = {row[0]: row[-1] for row in table}
        for headline in headlines():
            if headline.title not in verdicts or headline.components or headline.counted != "seed":
                continue
            side = weigh(rows.loc[[one, other]], headline).against(other)[one]
            assert verdicts.pop(headline.title) == words.get(side, "one shared seed: undecided"), headline.name


def test_hovering_says_value_band_and_cells(opened: Opened) -> None:
    box = opened.alone("SAN+skip")
    box.locator(".view svg .mark-symbol path").nth(3).hover()
    tip = opened.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    sentence = tip.inner_text()
    assert "SAN+skip" in sentence and "±" in sentence and "over 5 seeds" in sentence and "0" * 20 in sentence


def test_a_point_leads_to_the_provenance_of_its_networks(opened: Opened) -> None:
    box = opened.alone("SAN+skip")
    box.locator(".view svg .mark-symbol path").nth(3).click()
    cells = opened.page.locator("#cell .cells button")
    assert cells.count() == 5
    cells.nth(1).click()
    opened.page.locator("#cell .snippet").wait_for()
    body = opened.page.locator("#cell").text_content()
    assert "seed: 1}" in opened.page.locator("#cell .snippet").inner_text()
    for known in ("0123456789ab  rankfall/nets/network.py", "torch 2", "here", "cpu", "3 to train", "Specification"):
        assert known in body
    opened.page.keyboard.press("Escape")
    assert not opened.page.locator("#cell").is_visible()


INIT = "sorting, init, depth 6"


def test_the_scorecard_sorts_filters_and_explains(opened: Opened, folder: Path) -> None:
    page, table = opened.page, frames(folder / "tables", COUNT)["scorecard"]
    page.locator("#score-setting").select_option(INIT)
    table = table[table.setting == INIT]
    names = lambda: page.locator("#scorecard-table tbody th").all_inner_texts()  # noqa: E731
    number = lambda name: page.locator(f"#scorecard-table [data-number={name}]").all_inner_texts()  # noqa: E731
    assert sorted(names()) == sorted(table.architecture)
    values = [float(text.split()[0]) for text in number("residual_last")]
    assert values == sorted(values) and len(values) == 4
    head = page.locator("#scorecard-table thead button", has_text="residual at the last layer")
    head.click()
    assert [float(text.split()[0]) for text in number("residual_last")] == sorted(values, reverse=True)
    assert page.locator("#scorecard-table th[aria-sort=descending]").count() == 1
    page.locator("#score-search").fill("trans")
    assert names() == ["transformer"]
    page.locator("#scorecard-table [data-number=residual_last]").click()
    sentence = page.locator("#cell").inner_text()
    (row,) = table[table.architecture == "transformer"].itertuples()
    assert all(part in sentence for part in (f"{row.residual_last:.10f}"[:8], "table residuals", INIT))
    page.locator("#cell .networks").wait_for()
    assert page.locator("#cell .networks tbody tr").count() == row.residual_last_seeds == 5


def test_a_search_finds_architectures_of_other_settings(opened: Opened, folder: Path) -> None:
    page, table = opened.page, frames(folder / "tables", COUNT)["scorecard"]
    page.locator("#score-setting").select_option(INIT)
    name, setting = next((row.architecture, row.setting) for row in table.itertuples() if row.setting != INIT)
    page.locator("#score-search").fill(name)
    page.locator(f"#score-count [data-setting='{setting}']").click()
    assert page.locator("#score-setting").input_value() == setting
    assert name in page.locator("#scorecard-table tbody th").all_inner_texts()


def test_a_number_of_the_scorecard_leads_to_its_rows_and_they_to_its_networks(opened: Opened, folder: Path) -> None:
    page, known = opened.page, frames(folder / "tables", COUNT)
    residuals = known["residuals"]
    page.locator("#score-setting").select_option(INIT)
    page.locator("#scorecard-table [data-number=residual_last][data-row='SAN+skip']").click()
    page.locator("#cell .rows").wait_for()
    scores = known["scorecard"]
    (row,) = scores[(scores.architecture == "SAN+skip") & (scores.setting == INIT)].itertuples()
    own = residuals[(residuals.architecture == "SAN+skip") & (residuals.training == "init")]
    rows = [(line["key"], int(line["layer"]), float(line["value"])) for line in opened.downloaded("#cell [data-rows]")]
    assert rows == list(zip(own.key, own.layer, own.value))
    assert page.locator("#cell .rows tbody tr").count() == len(own) == 5 * LAYERS
    cells = page.locator("#cell .networks tbody td:nth-child(2)").all_inner_texts()
    last = own[own.layer == LAYERS - 1].value.tolist()
    assert [float(text) for text in cells] == pytest.approx(last, rel=1e-7)
    assert row.residual_last == pytest.approx(sum(last) / 5)
    page.locator("#cell .rows button[data-key]").nth(LAYERS).click()  # the second network's first row
    page.locator("#cell .snippet").wait_for()
    assert own.key.unique()[1] in page.locator("#cell").inner_text()
    page.keyboard.press("Shift+Tab")
    page.locator("#cell .back").click()
    assert page.locator("#cell .rows tbody tr").count() == 5 * LAYERS and not page.locator("#cell .back").is_visible()


def test_points_of_a_chart_are_reached_by_arrow_keys(opened: Opened) -> None:
    """Where the button of the keyboard is, there is a point; it says what hovering says, and leads to its networks."""
    page, box = opened.page, opened.alone("SAN+skip")
    point = box.locator("[data-point]")
    point.focus()
    seen = []
    for _ in range(LAYERS):
        middle = "(node) => { const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }"
        x, y = point.evaluate(middle)
        marks = box.locator(".view svg .mark-symbol path").evaluate_all(f"(nodes) => nodes.map({middle})")
        assert min(abs(x - one) + abs(y - other) for one, other in marks) < 3
        seen.append(box.locator(".says").inner_text())
        page.keyboard.press("ArrowRight")
    assert [text.partition(":")[0] for text in seen] == [f"SAN+skip, layer {layer}" for layer in range(LAYERS)]
    assert all("over 5 seeds" in text for text in seen)
    page.keyboard.press("Enter")
    assert page.locator("#cell .cells button").count() == 5


def test_a_view_can_be_sent(browser: Any, opened: Opened) -> None:
    """Choices stand in the address, and another reader's page begins with them."""
    box = opened.chart("residual")
    box.locator("[data-choose=training]").select_option("short")
    box.locator("[data-scale]").select_option("linear")
    box.locator("[data-line=transformer]").click()
    opened.page.locator("#score-setting").select_option(INIT)
    opened.page.locator("#scorecard-table thead button", has_text="depth that halves").click()
    opened.page.locator("#published-verdict").select_option("misses")
    box.locator("[data-link]").click()
    address = opened.page.url
    assert "#chart-residual?" in address
    with Opened(browser, address) as other:
        box = other.chart("residual")
        assert box.locator("[data-choose=training]").input_value() == "short"
        assert box.locator("[data-scale]").input_value() == "linear"
        assert box.locator("[data-line][aria-pressed=false]").all_inner_texts() == ["transformer"]
        assert other.page.locator("#score-at").inner_text().startswith(INIT)
        assert "depth that halves" in other.page.locator("#scorecard-table th[aria-sort]").inner_text()
        assert other.page.locator("#published-table tbody tr").count() == 2


def test_a_click_on_lines_that_lie_on_each_other_opens_all_of_them(opened: Opened) -> None:
    """The one drawn last hid the others and was the only one to open."""
    box = opened.chart("residual")
    same = (
        "const { cell, layer, value } = panel.chart.data.columns;"
        "value.values.forEach((_, at) => { "
        "value.values[at] = cells[cell.values[at]].label === 'transformer' ? 0.5 : 1 / (1 + layer.values[at]); });"
    )
    opened.page.evaluate(AGAIN, ["residual", same])
    sentence = box.locator("[role=status]").first.inner_text()
    assert re.search(r"Lines that lie on each other.*SAN = SAN\+skip", sentence) and "= transformer" not in sentence
    dashed = box.locator(".view svg .mark-line path").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('stroke-dasharray') || '')"
    )
    assert len(set(dashed)) >= 3
    x, y = opened.page.evaluate(
        """() => {
            const panel = window.rankfall.panels.find((one) => one.chart.name === "residual");
            const box = panel.box.querySelector("svg").getBoundingClientRect();
            const [x, y] = window.rankfall.placeOf(panel, panel.shownMarks.find((one) => one.line === "SAN" && one.x === 3));
            return [box.x + x, box.y + y];
        }"""
    )
    opened.page.mouse.click(x, y)
    assert opened.page.locator("#cell .meeting").count() == 3
    assert opened.page.locator("#cell .meeting h3", has_text="SAN+skip").count() == 1


def test_values_that_there_are_not_are_named_with_their_reason(opened: Opened) -> None:
    box = opened.chart("residual")
    gone = (
        "panel.chart.lacking = { rows: 2, columns: { cell: { values: [0, 1] }, layer: { values: [5, 6] },"
        " why: { of: ['beyond the range of float64'], values: [0, 0] } } };"
    )
    opened.page.evaluate(AGAIN, ["residual", gone])
    box.locator("[data-choose=training]").select_option("init")
    sentence = box.locator("[role=status]").first.inner_text()
    assert "2 values of SAN cannot be drawn: beyond the range of float64." in sentence


def test_verdicts_are_filtered(opened: Opened) -> None:
    page = opened.page
    verdicts = lambda: page.locator("#published-table tbody td:first-child").all_inner_texts()  # noqa: E731
    assert verdicts() == ["✗ misses", "✗ misses", "✓ holds", "– not measured"]
    assert "farther" in page.locator("#published-table tbody tr").first.inner_text()  # worst first
    page.locator("#published-verdict").select_option("misses")
    assert verdicts() == ["✗ misses"] * 2
    page.locator("#published-verdict").select_option("")
    page.locator("#published-search").fill("nowhere")
    assert verdicts() == ["– not measured"]


def test_tables_are_downloaded_whole(opened: Opened, folder: Path) -> None:
    for name in ("residuals", "cells", "orders"):
        table = frames(folder / "tables", COUNT)[name]
        rows = opened.downloaded(f"[data-csv={name}]")
        assert list(rows[0]) == list(table.columns) and len(rows) == len(table)
        column = "order" if name == "orders" else "value" if name == "residuals" else "test_accuracy"
        for row, own in zip(rows, table[column]):
            assert (float(row[column]) if row[column] else None) == (own if own == own else None)
    assert [row["status"] for row in opened.downloaded("[data-csv=residuals]")].count("diverged") == 1
    href = opened.page.locator("a[aria-label='residuals as Parquet']").get_attribute("href")
    assert (folder / "report" / href).resolve() == (folder / "tables" / "residuals.parquet").resolve()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, folder: Path, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with Opened(browser, address_of(folder), "desktop", theme) as opened:
        opened.charts()
        opened.page.locator("#chart-residual summary").click()
        assert serious(Axe().run(opened.page).response) == []
        opened.page.locator("#scorecard-table [data-number=residual_last]").first.click()
        opened.page.locator("#cell .rows").wait_for()
        assert serious(Axe().run(opened.page).response) == []


def serious(response: Any) -> list[str]:
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')}"
        for one in response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def test_ten_thousand_cells(browser: Any, tmp_path: Path) -> None:
    """Under 5 MB, there in seconds, and a change of a menu is answered in well under one."""
    text, path = made_page(tmp_path, MANY), tmp_path / "report" / "index.html"
    assert len(text) < 5_000_000
    path.parent.mkdir()
    path.write_text(text)
    start = time.monotonic()
    with Opened(browser, path.as_uri()) as opened:
        assert time.monotonic() - start < 20
        assert "networks" in opened.chart("residual").locator("[role=status]").first.inner_text()
        clicked = opened.page.evaluate(
            """async () => {
                const panel = window.rankfall.panels.find((one) => one.chart.name === "residual"), began = performance.now();
                panel.box.querySelector("[data-lines=all]").click();
                await panel.pending;
                return performance.now() - began;
            }"""
        )
        assert clicked < 5_000
