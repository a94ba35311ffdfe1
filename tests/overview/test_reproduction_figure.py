"""Guards the reproduction figure: its caption counts what holds, where, and what failed, and says no more than it can."""

from pathlib import Path
from typing import Any

import pytest

from rankfall.overview.reproduction.figure import FRAME, reproduction
from rankfall.report import style, tables


def row(name: str, setting: str, **changes: Any) -> dict[str, Any]:
    """A comparison that holds at the published setting."""
    return {
        "name": name,
        "setting": setting,
        "at_published": True,
        "source": "paper",
        "source_name": "Nobody 2020",
        "source_title": "On attention",
        "source_link": "https://example.org",
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
    with style.apply_style():
        return reproduction(lambda name: tables.read_frame(folder / f"{name}.parquet", name))


def saved(rows: list[dict[str, Any]], folder: Path) -> style.Picture:
    picture = drawn(rows, folder)
    style.save(picture, folder / "figure.png")
    assert (folder / "figure.png").stat().st_size > 5000
    return picture


def test_caption_counts_apart_what_is_at_the_published_settings(tmp_path: Path) -> None:
    caption = drawn(ROWS, tmp_path).caption
    assert "4 of 12 comparisons with published numbers hold, 2 of 6 at the published settings" in caption
    assert "1 published number is not measured in this run" in caption
    assert "On the axis, paper: Nobody 2020." in caption  # the axis has `paper` alone
    assert (
        "at the published settings, of 2 numbers, drawn below; the worst is 'apart': published 0.5, ours none, 5 of 5 seeds failed."
        in caption
    )


def test_every_comparison_is_in_the_numbers_with_why_it_misses(tmp_path: Path) -> None:
    numbers = drawn(ROWS, tmp_path).numbers
    assert numbers is not None and len(numbers) == len(ROWS)
    reasons = numbers.set_index(["name", "setting"]).reason
    assert reasons["whole", "training=published"] == ""
    assert reasons["whole", "training=long"] == "0.01 too high, 0.02 is allowed"  # the difference is the row's own
    assert reasons["apart", "width=32"] == "only 3 of 5 seeds are above"
    assert reasons["apart", "width=64"] == "2 of 5 seeds failed"
    assert reasons["gone", ""] == "not measured in this run"
    assert set(numbers[numbers.name.str.startswith("curve")].experiment) == {"paper, curves by layer"}


@pytest.mark.long
def test_experiments_stand_with_the_most_misses_first_and_a_number_out_of_the_frame_at_its_edge(tmp_path: Path) -> None:
    (counts, listed) = saved(ROWS, tmp_path).figure.axes
    assert [text.get_text() for text in counts.get_yticklabels()] == [
        "paper, curves by layer",
        "paper, figure",
    ]  # from below
    assert [text.get_text() for text in listed.get_yticklabels()] == ["curve layer 02", "apart"]
    far = [row("far", "width=1", ours=1e9, difference=1e9, holds=False)]
    listed = saved(far, tmp_path).figure.axes[1]
    assert [line.get_xdata()[0] for line in listed.lines if line.get_marker() == ">"] == [FRAME[1]]


def test_without_misses_or_without_anything(tmp_path: Path) -> None:
    """Of no comparison at all it was said that nothing misses, under axes from 0 to 1."""
    picture = saved(ROWS[:2], tmp_path)
    assert "of 2 comparisons" in picture.caption and picture.caption.endswith(
        "Nothing misses at the published settings."
    )
    other = saved([row("many", "width=3", at_published=False, holds=False)], tmp_path)
    assert "0 of 1 comparisons" in other.caption and "none of which is at the published settings" in other.caption
    assert "misses at" not in other.caption and other.figure.axes[1].get_title() == ""
    nothing = saved([ROWS[-1]], tmp_path)
    assert (
        nothing.caption
        == "Nothing of this run is compared with a published number: 1 published number is not measured in this run."
    )
    assert not nothing.figure.axes[0].axison and nothing.figure.axes[1].get_title() == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sense": "magnitude", "ours": 1.5, "tolerance": 0.3}, "a factor 3, 2 is allowed"),
        ({"sense": "floor", "ours": 1e-3, "tolerance": 1e-6}, "above the floor of 1e-06"),
        ({"sense": "above", "ours": 0.1}, "not above 0.5"),
    ],
)
def test_why_a_comparison_misses(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    numbers = drawn([row("one", "s", holds=False, **changes)], tmp_path).numbers
    assert numbers is not None and numbers.reason.tolist() == [said]
