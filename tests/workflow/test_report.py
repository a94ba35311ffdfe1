"""Guards `make report`: report.html opens in a browser and shows what the configuration says."""

from pathlib import Path
from typing import Any

import pytest
from checkout import CONFIG, Checkout
from in_browser import browser  # noqa: F401


@pytest.mark.slow
def test_a_report_shows_the_name_and_the_captions(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    about = {"name": "my <first> study", "labels": {"soft": "ours"}, "figures": {"curves": {}}}
    checkout = Checkout.make(tmp_path / "own", CONFIG | about)
    checkout.run()
    report = checkout.finish(checkout.start_beside("--report", "results/report.html"))
    assert report.code == 0 and "docutils" not in report.output and "ERROR/" not in report.output, report.output
    errors: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((checkout.results / "report.html").as_uri())
    page.get_by_text("Rankfall measures what an attention architecture loses").wait_for()
    assert "my <first> study" in page.inner_text("body")
    assert "ours" in page.evaluate("Object.values(results).find((result) => result.caption).caption")
    assert errors == []
