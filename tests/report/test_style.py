"""Guards what all figures share: colours that follow from names, the same files for the same table, and nothing of torch."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from rankfall import components
from rankfall.rank.paths.figure import paths
from rankfall.report import style
from rankfall.report.lines import lines, summary


def table() -> pd.DataFrame:
    """Two lines of three seeds: means 1 and 10 apart by known deviations."""
    rows = [
        {"architecture": name, "seed": seed, "x": x, "y": level * (1 + 0.1 * (seed - 1))}
        for name, level in (("SAN", 1.0), ("transformer", 10.0))
        for seed in range(3)
        for x in range(3)
    ]
    return pd.DataFrame(rows)


def test_bands_are_what_the_summary_says() -> None:
    """One standard deviation on both sides; on a logarithmic axis, of the logarithm."""
    with style.apply_style():
        plain = lines(table(), "x", "y", "architecture", {"SAN": "#000000"}).axes.flat[0]
        scaled = lines(table(), "x", "y", "architecture", {"SAN": "#000000"}, log="y").axes.flat[0]
    points = summary(table(), ["architecture", "x"], "y").query("architecture == 'SAN'").iloc[0]
    assert [points["mean"], points["deviation over seeds"], points["seeds"]] == pytest.approx([1, 0.1, 3])
    for panel, log in ((plain, False), (scaled, True)):
        one = summary(table(), ["architecture", "x"], "y", log=log).query("architecture == 'SAN'").iloc[0]
        middle, width = one["mean"], one["deviation of log10 over seeds" if log else "deviation over seeds"]
        ends = (middle / 10**width, middle * 10**width) if log else (middle - width, middle + width)
        edges = panel.collections[0].get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == (pytest.approx(ends[0]), pytest.approx(ends[1]))


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    def drawn() -> dict[str, bytes]:
        with style.apply_style():
            grid = lines(table(), "x", "y", "architecture", {"SAN": "#000000", "transformer": "#aa0000"})
        return style.files(style.Picture(grid.figure, "What it shows.", table()))

    first, second = drawn(), drawn()
    assert list(first) == list(style.FORMATS) and first == second
    assert all(len(content) > 100 for content in first.values())


@pytest.mark.long
def test_figures_are_drawn_without_torch() -> None:
    """It takes seconds to import, in each of many small jobs."""
    names = [components.locate("figure", name).module for name in components.names("figure")]  # type: ignore[union-attr]
    program = f"import sys, importlib\nfor name in {names!r}: importlib.import_module(name)\nimport seaborn, rankfall.commands.figure\n"
    done = subprocess.run(
        [sys.executable, "-c", program + "print('torch' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert paths.__module__ in names
