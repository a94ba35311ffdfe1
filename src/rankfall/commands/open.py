"""Open the page of a run's results in the browser; its path is printed, for a machine that has none."""

import argparse
import os
import sys
from pathlib import Path

PAGE = Path("report") / "index.html"  # under the folder of results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of results (default: results)")


def run(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError

    page = (args.results / PAGE).absolute()
    if not page.is_file():
        raise RankfallError(
            f"{page} is missing: `make run` writes it; say --results FOLDER if its results are elsewhere"
        )
    print(page)
    if has_screen():
        import webbrowser

        webbrowser.open(page.as_uri())
    return 0


def has_screen() -> bool:
    """Whether a browser would have somewhere to show a page; in a terminal on a server a text browser would take it over."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
