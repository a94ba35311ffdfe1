"""Guards `make report`: report.html opens in a browser and shows what the configuration says."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from checkout import CONFIG, Checkout

pytestmark = pytest.mark.slow
CHROMIUM = os.environ.get("RANKFALL_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def test_a_report_shows_the_name_and_the_captions(tmp_path: Path) -> None:
    if CHROMIUM is None:
        if os.environ.get("RANKFALL_BROWSER") == "required":
            pytest.fail("there is no Chromium, and RANKFALL_BROWSER says it is required: apt-get install chromium")
        pytest.skip("there is no Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    checkout = Checkout.make(
        tmp_path / "own", CONFIG | {"name": "my <first> study", "labels": {"soft": "ours"}, "figures": {"curves": {}}}
    )
    run = checkout.finish(checkout.start())
    assert run.code == 0, run.output
    made = checkout.finish(checkout.start_beside("--report", "results/report.html"))
    assert made.code == 0 and "docutils" not in made.output and "ERROR/" not in made.output, made.output
    said: list[Any] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((checkout.results / "report.html").as_uri())
        page.get_by_text("Rankfall measures what an attention architecture loses").wait_for()
        assert "my <first> study" in page.inner_text("body")
        assert "ours" in page.evaluate("Object.values(results).find((one) => one.caption).caption")
        assert said == []
        browser.close()
