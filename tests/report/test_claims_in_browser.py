"""The section of claims in a real browser: verdicts to filter by, and a button that leads to the chart of a claim's numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_browser import Opened, browser

from rankfall.report import tables
from rankfall.report.page.build import Given, page

pytestmark = pytest.mark.slow
__all__ = ["browser"]
ONE = {
    "says": "s",
    "paper": "A: B, 2024",
    "link": "https://example.org/a",
    "seen": "the abstract alone",
    "setting": "x",
    "threshold": "t",
    "said": "It does.",
    "number": 1.0,
    "low": 0.5,
    "high": 1.5,
    "seeds": 5,
    "wants": "",
    "published": 0,
    "defects": "",
    "study": "x",
}
CLAIMS = [
    ONE | {"claim": "first", "verdict": "holds"},
    ONE | {"claim": "second", "verdict": "contradicted", "defects": "a.py, line 3"},
]
EVIDENCE = [
    {"claim": claim, "quantity": "spread, by layer", "line": line, "x": x, "seed": seed, "value": x + seed, "value_reason": None}
    for claim in ("first", "second") for line in ("a", "b") for x in (1.0, 2.0) for seed in (0, 1)
]  # fmt: skip


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    rows: dict[str, list[dict[str, Any]]] = {"cells": [], "claims": CLAIMS, "evidence": EVIDENCE}
    for name, of in rows.items():
        tables.write(name, of, tmp_path / f"{name}.parquet")
    given = Given(
        "claims", list(rows), lambda name: tables.read_frame(tmp_path / f"{name}.parquet", name), [], {}, {}, "0"
    )
    (tmp_path / "index.html").write_text(page(given))
    found = Opened(browser, tmp_path / "index.html")
    yield found
    assert found.said == []
    found.context.close()


def shown(opened: Opened) -> list[str]:
    found: list[str] = opened.page.eval_on_selector_all(
        "#claims-table tbody tr", "rows => rows.map(row => row.cells[0].textContent)"
    )
    return found


def test_verdicts_are_filtered_and_searched(opened: Opened) -> None:
    assert shown(opened) == ["✗ contradicted", "✓ holds"]
    opened.page.select_option("#claims-verdict", "holds")
    assert shown(opened) == ["✓ holds"] and "claims.verdict=holds" in opened.page.url
    assert "1 of 2 claims: contradicted 0, holds only in part 0, holds 1" in opened.page.text_content("#claims-count")
    opened.page.fill("#claims-search", "second")
    assert shown(opened) == []


@pytest.mark.parametrize("drawn", [False, True], ids=["before the chart is drawn", "after"])
def test_a_claim_leads_to_its_numbers(opened: Opened, drawn: bool) -> None:
    if drawn:
        opened.chart("evidence")
    opened.page.locator("#claims-table tbody tr").first.get_by_role("button", name="chart").click()
    box = opened.chart("evidence")
    assert box.locator('[data-choose="claim"]').input_value() == "second"


def test_nothing_is_wider_than_a_phone(browser: Any, opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 375, "height": 812})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 375
