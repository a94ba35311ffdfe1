"""Guards the reproduction figure: its caption counts what holds, where, and what failed, and says no more than it can."""

from pathlib import Path
from typing import Any

from rankfall.overview.reproduction.shown import figure as reproduction
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
