"""Print the path of the page of a run or of a watched training, and open it in the browser if the machine has a screen."""

import argparse
import os
import sys
from pathlib import Path

ARGUMENTS = """
[FILE]             table that rankfall.watch has written; its page is written beside it
--results FOLDER   folder of results (default: results)
--out FILE         the page of that table; by default RUN.html
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.errors import RankfallError
    from rankfall.project import run_command
    from rankfall.run.screen.ending import page_of

    page = page_of(args.results).absolute()
    if args.file is not None:
        page = write_watch_page(args.file, args.out)
    elif not page.is_file():
        raise RankfallError(
            f"{page} is missing: `{run_command()}` writes it; pass --results FOLDER if the results are elsewhere"
        )
    print(page)
    if has_screen():
        import webbrowser

        webbrowser.open(page.as_uri())
    return 0


def write_watch_page(table: Path, out: Path | None) -> Path:
    """Write the page of a watched training from the current state of its table, and return its path."""
    from rankfall.disk import write
    from rankfall.errors import RankfallError
    from rankfall.watch.page import page_of
    from rankfall.watch.sinks import read_table

    if not table.is_file():
        raise RankfallError(
            f"{table} is not a file: name the table that rankfall.watch(model, to='run.parquet') has written"
        )
    rows = read_table(table)
    if not rows.num_rows:
        raise RankfallError(f"{table} has no rows yet: the first step of a training writes some")
    page = (out or table.with_suffix(".html")).absolute()
    text = page_of(rows.to_pandas(), table.name)
    write(page, text)
    return page


def has_screen() -> bool:
    """Return whether a graphical browser can open. In a terminal on a server, a text browser would take over the terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
