"""Time a newcomer's first quarter of an hour: the commands and code of README in a fresh clone, up to an attention in the scorecard.

    python -m benchmarks.newcomer FOLDER

Clones what is committed here into FOLDER, which must not exist, and writes docs/newcomer.md. Reading is not timed.
"""

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "newcomer.md"
QUESTION = "Which architecture collapses fastest?"  # the first one that the page answers
NAME = "square"  # of README's attention normaliser
UNSET = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARGS", "CONFIG", "PROFILE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    if folder.exists():
        sys.exit(f"error: {folder} exists already; name a folder that does not")
    steps: list[tuple[str, Callable[[], str]]] = [
        ("clone", lambda: run_shell(f"git clone -q '{ROOT}' '{folder}'", ROOT)),
        ("install: `make setup`, which the first `make run` does by itself", lambda: run_shell("make setup", folder)),
        ("the default run: `make run`", lambda: run_shell("make run", folder)),
        ("open the page, and read there who collapses fastest", lambda: read_page(folder)),
        ("a normaliser of one's own, and its line in `config.yaml`", lambda: add_component(folder)),
        ("run again: `make run`", lambda: run_shell("make run", folder)),
        ("open the page, and find it in the scorecard", lambda: read_page(folder, NAME)),
    ]
    rows = []
    for label, step in steps:
        began = time.monotonic()
        output = step()
        rows.append((label, time.monotonic() - began, output))
        print(f"{rows[-1][1]:7.1f} s  {label}: {output}", flush=True)
    PAGE.write_text(write_page(rows))
    print(f"written: {PAGE.relative_to(ROOT)}")


def run_shell(command: str, folder: Path) -> str:
    """Run a command as a newcomer's shell does, and return the first line of its report, if it has one."""
    environment = {name: value for name, value in os.environ.items() if name not in UNSET}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"error: {command} ends with {done.returncode}:\n{done.stdout[-3000:]}")
    return next((line.removeprefix("==> ") for line in done.stdout.splitlines() if line.startswith("==> ")), "")


def read_page(folder: Path, architecture: str | None = None) -> str:
    """Return the page's first answer in a browser, or the row of an architecture in its scorecard."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto((folder / "results/report/index.html").as_uri())
        if architecture is None:
            text = page.locator("main").get_by_text(QUESTION).first.locator("..").inner_text()
        else:
            page.fill("#score-search", architecture)
            page.click("#score-count button")  # its setting
            text = page.locator("table tr", has=page.get_by_text(architecture, exact=True)).first.inner_text()
        browser.close()
    return " ".join(text.split()).removeprefix(QUESTION).partition(". ")[0].strip()


def add_component(folder: Path) -> str:
    """Add README's example: its file, its line under `architectures:`, and its name in the grid of untrained networks."""
    readme, config = (ROOT / "README.md").read_text(), folder / "config.yaml"
    example = r"`(src/rankfall/nets/normalisers/\w+\.py)`:\n\n```python\n(.*?)```"
    path, code = re.search(example, readme, re.DOTALL).groups()
    (line,) = re.findall(rf"```yaml\n(  {NAME}: .*?\n)```", readme, re.DOTALL)
    (folder / path).write_text(code)
    text, grid = config.read_text(), "attention+column-norm]"
    for old, new in (("\narchitectures:\n", f"\narchitectures:\n{line}"), (grid, f"{grid[:-1]}, {NAME}]")):
        if text.count(old) != 1:
            sys.exit(f"error: config.yaml has {old!r} {text.count(old)} times: adapt benchmarks/newcomer.py")
        text = text.replace(old, new)
    config.write_text(text)
    return f"{path}, and two places of config.yaml"


def write_page(rows: list[tuple[str, float, str]]) -> str:
    """Return the page with the times of all steps."""
    machine = (
        f"{os.cpu_count()} cores ({processor_name()}), Python {platform.python_version()}, packages from a near mirror"
    )
    lines = [f"| {label} | {show_time(seconds)} |" for label, seconds, _ in rows]
    total = show_time(sum(seconds for _, seconds, _ in rows))
    return f"""# The first quarter of an hour, timed

From a clone to an attention normaliser of one's own in the scorecard, with nothing but [README](../README.md): its commands, its example of
a component, its line for `config.yaml`. `python -m benchmarks.newcomer FOLDER` does this in a fresh clone and writes this page; the
computer types and reads faster than you do, so add your own minutes for these.

| step | time |
|---|---|
{chr(10).join(lines)}
| **all** | **{total}** |

{datetime.date.today().isoformat()}, {machine}. The page's answer to "{QUESTION}": {rows[3][2]}.

The last run trained the networks of the new architecture only, and made anew what shows them.
"""


def processor_name() -> str:
    """Return the processor as Linux names it, with family and model, else the kind of machine."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        words = [re.search(rf"^{key}\s*: (.*)$", text, re.MULTILINE) for key in ("model name", "cpu family", "model")]
        if all(words):
            name, family, model = (word.group(1) for word in words if word)
            return f"{name}, family {family}, model {model}"
    return platform.machine()


def show_time(seconds: float) -> str:
    """Write seconds as `48 s` or `2 min 05 s`."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


if __name__ == "__main__":
    main()
