"""Guards the reproduction figure: its caption counts what holds, where, and what failed, and says no more than it can."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankfall.report import style, tables
from rankfall.report.figures.reproduction import FRAME, reproduction


def row(name: str, setting: str, **changes: Any) -> dict[str, Any]:
    """A comparison that holds at the published setting."""
    return {
        "name": name,
        "setting": setting,
        "at_published": True,
        "source": "paper",
        "place": "figure",
        "what": "w",
        "kind": "measured",
        "sense": "equal",
        "published": 0.5,
        "tolerance": 0.02,
        "ours": 0.51,
        "deviation": 0.01,
        "seeds": 5,
        "held": 4,
        "failed": 0,
        "difference": 0.01,
        "holds": True,
    } | changes


NOT_MEASURED = {"at_published": None, "ours": None, "deviation": None, "seeds": 0, "held": 0, "difference": None}
ROWS = [
    row("whole", "training=published"),
    row("whole", "training=long", at_published=False, ours=0.7, deviation=None, holds=False),
    row("apart", "width=32", sense="all above", held=3, holds=False),
    row("apart", "width=64", sense="all above", ours=1e9, seeds=3, held=3, failed=2, holds=False),
    row("apart", "width=128", sense="all above", **NOT_MEASURED | {"at_published": True, "failed": 5, "holds": False}),
    *(row("many", f"width={width}", at_published=False, ours=width / 100, holds=width > 2) for width in range(5)),
    row("curve layer 01", "text=t", published=2e-7, ours=1e-7, sense="floor"),
    row("curve layer 02", "text=t", published=0.5, ours=0.9, holds=False),
    row("gone", "", **NOT_MEASURED | {"holds": None}),
]


def drawn(rows: list[dict[str, Any]], folder: Path) -> style.Picture:
    """From rows written and read as the pipeline does."""
    tables.write("reproduction", rows, folder / "reproduction.parquet")
    with style.applied():
        picture = reproduction(lambda name: tables.read_frame(folder / f"{name}.parquet", name))
    style.save(picture, folder / "figure.png")
    assert (folder / "figure.png").stat().st_size > 5000
    return picture


def test_caption_counts_apart_what_is_at_the_published_settings(tmp_path: Path) -> None:
    caption = drawn(ROWS, tmp_path).caption
    assert "4 of 12 comparisons hold: 2 of 6 at the published settings and 2 of 6 at others; " in caption
    assert "2 have failed seeds (no finite number, not done, or out of bounds) and so do not; " in caption
    assert "1 published numbers are not measured in this run." in caption


def test_caption_says_each_number_with_its_settings(tmp_path: Path) -> None:
    caption = drawn(ROWS, tmp_path).caption
    assert "whole: published = 0.5, ours 0.7 (training=long), 0.51 (training=published)." in caption
    assert "none (width=128; 5 of 5 seeds failed)" in caption and "1e+09 (width=64; 2 of 5 seeds failed)" in caption
    assert "0.51 (width=32; 3 of 5 seeds)" in caption
    assert "many: published = 0.5, ours 0 to 0.04 at 5 settings, 2 of which hold." in caption
    assert "curve" not in caption and "gone" not in caption


def test_a_number_out_of_the_frame_is_drawn_at_its_edge(tmp_path: Path) -> None:
    (listed, against) = drawn(ROWS, tmp_path).figure.axes
    assert listed.get_xlim() == (pytest.approx(FRAME[0] - 0.05), pytest.approx(FRAME[1] + 0.05))
    places = [line.get_xdata()[0] for line in listed.lines if line.get_marker() == ">"]
    assert places == [FRAME[1]]
    assert sum(len(line.get_xdata()) for line in against.lines if line.get_marker() == "o") == 2


@pytest.mark.parametrize("rows", [ROWS[:2], [ROWS[-1]]])
def test_without_curves_or_without_anything(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    picture = drawn(rows, tmp_path)
    assert len(picture.figure.axes) == 1
    assert f"of {pd.Series([one['holds'] for one in rows]).notna().sum()} comparisons hold" in picture.caption
