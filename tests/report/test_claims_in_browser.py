"""The section of claims in a real browser: verdicts to filter by, and a button that leads to the chart of a claim's numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_browser import Opened, browser

from rankfall.report import tables
from rankfall.report.page.build import PageInputs, page

pytestmark = pytest.mark.slow
__all__ = ["browser"]
ONE = dict.fromkeys(("changed", "cells", "extends", "wants", "defects"), "") | {
    "says": "s", "paper": "A: B, 2024", "link": "https://example.org/a", "seen": "the abstract alone", "setting": "x", "threshold": "t",
    "shown": "spread, by layer", "said": "It does.", "number": 1.0, "low": 0.5, "high": 1.5, "seeds": 5, "published": 0, "study": "x",
}  # fmt: skip
CHANGED = {"extends": "Extends to causal masks.", "defects": "a.py, line 3", "changed": "The bound, since."}
CLAIMS = [
    ONE | {"claim": "first", "verdict": "holds"},
    ONE | {"claim": "second", "verdict": "contradicted", "said": "It does not."} | CHANGED,
]
EVIDENCE = [
    {"claim": claim, "quantity": "spread, by layer", "line": line, "x": x, "seed": seed, "value": x + seed, "value_reason": None}
    for claim in ("first", "second") for line in ("a", "b") for x in (1.0, 2.0) for seed in (0, 1)
]  # fmt: skip

MORE = "another, by layer"
EVIDENCE += [
    {"claim": "second", "quantity": MORE, "line": "a", "x": x, "seed": seed, "value": 7.0, "value_reason": None}
    for x in (1.0, 2.0) for seed in (0, 1)
]  # fmt: skip


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    rows: dict[str, list[dict[str, Any]]] = {"cells": [], "claims": CLAIMS, "evidence": EVIDENCE}
    for name, of in rows.items():
        tables.write(name, of, tmp_path / f"{name}.parquet")
    given = PageInputs(
        "claims",
        list(rows),
        lambda name: tables.read_frame(tmp_path / f"{name}.parquet", name),
        [],
        {"deep": "What decides claims. second: It does not.", "wide": "Another."},
        "0",
    )
    (tmp_path / "index.html").write_text(page(given))
    with Opened(browser, (tmp_path / "index.html").as_uri()) as opened:
        yield opened


def shown(opened: Opened) -> list[str]:
    result: list[str] = opened.page.eval_on_selector_all(
        "#claims-table tbody tr", "rows => rows.map(row => row.cells[0].textContent)"
    )
    return result


def test_verdicts_are_filtered_and_searched(opened: Opened) -> None:
    assert shown(opened) == ["✗ contradicted", "✓ holds"]
    opened.page.select_option("#claims-verdict", "holds")
    assert shown(opened) == ["✓ holds"] and "claims.verdict=holds" in opened.page.url
    assert "1 of 2 claims: contradicted 0, holds only in part 0, holds 1" in opened.page.text_content("#claims-count")
    opened.page.fill("#claims-search", "second")
    assert shown(opened) == []


def test_a_claim_leads_to_its_numbers(opened: Opened) -> None:
    opened.page.locator("#claims-table tbody tr").first.get_by_role("button", name="chart").click()
    box = opened.chart("evidence")
    assert box.locator('[data-choose="claim"]').input_value() == "second"
    assert box.locator('[data-choose="quantity"]').input_value() == "spread, by layer"


def test_a_claim_leads_to_its_rows_with_their_seeds_and_to_its_figure(opened: Opened) -> None:
    row = opened.page.locator("#claims-table tbody tr").first
    assert row.get_by_role("link", name="figure deep").get_attribute("href") == "../figures/deep.png"
    assert "Changed after numbers were seen: The bound, since." in row.text_content()
    row.get_by_role("button", name="rows").click()
    shown = opened.page.eval_on_selector_all(
        "#cell-body tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    own = [one for one in EVIDENCE if one["claim"] == "second" and one["quantity"] == "spread, by layer"]
    numbers = [
        (one["quantity"], one["line"], str(int(one["x"])), str(one["seed"]), str(int(one["value"]))) for one in own
    ]
    wanted = sorted([*numbers, *((MORE, "a", str(x), str(seed), "7") for x in (1, 2) for seed in (0, 1))])
    assert sorted(tuple(one[:5]) for one in shown) == wanted
    opened.page.locator("#cell-body select").select_option(MORE)
    assert opened.page.locator("#cell-body tbody tr").count() == 4 and "4 rows" in opened.page.text_content(
        "#cell-body .hint"
    )
