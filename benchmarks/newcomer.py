"""A newcomer's first quarter of an hour, timed: README's commands and code in a fresh clone, to an attention of one's own in the scorecard.

    python -m benchmarks.newcomer FOLDER

clones what is committed here into FOLDER, which must not exist, and writes docs/newcomer.md. What is typed and copied is taken from
README.md as it stands; reading is not timed.
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
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "newcomer.md"
ASKED = "Which architecture collapses fastest?"  # the first question that the page answers
NAME = "square"  # of README's attention normaliser
LEFT_OUT = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARGS", "CONFIG", "PROFILE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    if folder.exists():
        sys.exit(f"error: {folder} exists already; name a folder that does not")
    readme = (ROOT / "README.md").read_text()
    steps: list[tuple[str, Callable[[], str]]] = [
        ("clone", lambda: typed(f"git clone -q '{ROOT}' '{folder}'", ROOT)),
        ("install: `make setup`, which the first `make run` does by itself", lambda: typed("make setup", folder)),
        ("the default run: `make run`", lambda: typed("make run", folder)),
        ("open the page, and read there who collapses fastest", lambda: opened(folder)),
        ("a normaliser of one's own, and its line in `config.yaml`", lambda: added(folder, readme)),
        ("run again: `make run`", lambda: typed("make run", folder)),
        ("open the page, and find it in the scorecard", lambda: opened(folder, NAME)),
    ]
    rows = []
    for what, step in steps:
        began = time.monotonic()
        said = step()
        rows.append((what, time.monotonic() - began, said))
        print(f"{rows[-1][1]:7.1f} s  {what}: {said}", flush=True)
    PAGE.write_text(page(rows))
    print(f"written: {PAGE.relative_to(ROOT)}; {sum(seconds for _, seconds, _ in rows) / 60:.1f} minutes")


def typed(command: str, folder: Path) -> str:
    """Runs a command as a newcomer's shell does, and returns the first line of its report, if it has one."""
    left = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=left, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"error: {command} ends with {done.returncode}:\n{done.stdout[-3000:]}")
    finished = [line for line in done.stdout.splitlines() if line.startswith("==> ")]
    return finished[0].removeprefix("==> ") if finished else ""


def opened(folder: Path, architecture: str | None = None) -> str:
    """What the page says in a browser: its first answer, or the row of an architecture in its scorecard."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page()
        shown.goto((folder / "results/report/index.html").as_uri())
        if architecture is None:
            said = shown.locator("main").get_by_text(ASKED).first.locator("..").inner_text()
        else:
            said = shown.locator("table tr", has=shown.get_by_text(architecture, exact=True)).first.inner_text()
        browser.close()
    return " ".join(said.split()).removeprefix(ASKED).partition(". ")[0].strip()


def added(folder: Path, readme: str) -> str:
    """README's example: its file, its line under `architectures:`, and its name in the grid beside the untrained ones."""
    path, code = re.search(
        r"`(src/rankfall/nets/normalisers/\w+\.py)`:\n\n```python\n(.*?)```", readme, re.DOTALL
    ).groups()
    (line,) = re.findall(rf"```yaml\n(  {NAME}: .*?\n)```", readme, re.DOTALL)
    (folder / path).write_text(code)
    config = folder / "config.yaml"
    text = config.read_text()
    for old, new in (
        ("\narchitectures:\n", f"\narchitectures:\n{line}"),
        ("attention+column-norm]", f"attention+column-norm, {NAME}]"),
    ):
        if text.count(old) != 1:
            sys.exit(f"error: config.yaml has {old!r} {text.count(old)} times: adapt benchmarks/newcomer.py")
        text = text.replace(old, new)
    config.write_text(text)
    return f"{path}, and two places of config.yaml"


def page(rows: list[tuple[str, float, str]]) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, packages from a near mirror"
    lines = [f"| {what} | {clock(seconds)} |" for what, seconds, _ in rows]
    total = clock(sum(seconds for _, seconds, _ in rows))
    return f"""# The first quarter of an hour, timed

From a clone to an attention normaliser of one's own in the scorecard, with nothing but [README](../README.md): its commands, its example of
a component, its line for `config.yaml`. `python -m benchmarks.newcomer FOLDER` does this in a fresh clone and writes this page; the
computer types and reads faster than you do, so add your own minutes for these.

| step | time |
|---|---|
{chr(10).join(lines)}
| **all** | **{total}** |

{datetime.date.today().isoformat()}, {machine}. The page's answer to "{ASKED}": {rows[3][2]}.

The last run trained the networks of the new architecture only, and made anew what shows them.
"""


def clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


if __name__ == "__main__":
    main()
