"""The page in a real browser: Chromium is the system's, driven by Playwright. Where it is not installed tests are skipped, unless
RANKFALL_BROWSER=required."""

import csv
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("RANKFALL_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
REQUIRED = os.environ.get("RANKFALL_BROWSER") == "required"
SIZES = {"desktop": (1280, 900), "phone": (375, 812), "small": (360, 640)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        if REQUIRED:
            pytest.fail("there is no Chromium, and RANKFALL_BROWSER says it is required: apt-get install chromium")
        pytest.skip("there is no Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


class Opened:
    """The page, and what the browser did beside showing it. As a context it ends without a message on the console."""

    def __init__(
        self, browser: Any, address: str, size: str = "desktop", theme: str = "light", unfold: bool = True
    ) -> None:
        width, height = SIZES[size]
        viewport = {"width": width, "height": height}
        self.context = browser.new_context(viewport=viewport, color_scheme=theme, accept_downloads=True)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)
        if unfold:
            self.page.evaluate("window.rankfall.unfold()")

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        assert kind is not None or not self.messages, self.messages

    def chart(self, name: str) -> Any:
        box = self.page.locator(f"#chart-{name}")
        box.scroll_into_view_if_needed()
        self.page.wait_for_function(f"document.getElementById('chart-{name}').dataset.drawn", timeout=60_000)
        self.settle(name)
        box.locator(".view").evaluate("node => node.scrollIntoView({block: 'center'})")  # clear of the bar at the top
        return box

    def alone(self, line: str) -> Any:
        """The chart of residuals with one line, so that no point hides another."""
        box = self.chart("residual")
        box.locator("[data-lines=none]").click()
        box.locator(f"[data-line='{line}']").click()
        return self.chart("residual")

    def settle(self, name: str) -> None:
        """Until the chart is drawn."""
        self.page.evaluate(f"window.rankfall.panels.find((panel) => panel.chart.name === '{name}').pending")

    def charts(self) -> list[str]:
        names: list[str] = self.page.eval_on_selector_all(
            "[data-chart]", "boxes => boxes.map(box => box.dataset.chart)"
        )
        for name in names:
            self.chart(name)
        return names

    def downloaded(self, selector: str) -> list[dict[str, str]]:
        with self.page.expect_download() as waited:
            self.page.locator(selector).click()
        return list(csv.DictReader(io.StringIO(Path(waited.value.path()).read_text())))
