"""The conflict: its points have the numbers of three tables, joined by what an architecture is made of, and never by a guess."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from masked_rows import KEPT, abouts, lengths

from rankfall import components
from rankfall.report import style, tables
from rankfall.report.part_numbers import MADE_OF

ROWS = {"softmax": 1, "l2": 32}
ORDERS = {"softmax": 3.0, "l2": 1.0}
Tables = dict[str, list[dict[str, Any]]]


def made_of(about: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {column: about[column] for column in MADE_OF} | changes


def probed(about: dict[str, Any], **changes: Any) -> dict[str, Any]:
    numbers = {"depth": 2, "tokens": 32, "untrained_rows": ROWS[about["normaliser"]], "untrained_least": 1, "draws": 8}
    texts = {"argument": "rows sum to one", "argument_reason": "", "agreement": "agree", "reason": ""}
    return made_of(about) | numbers | texts | changes


def ordered(about: dict[str, Any], **changes: Any) -> dict[str, Any]:
    numbers = {
        "order": ORDERS[about["normaliser"]],
        "draws": 3,
        "identical_draws": 0,
        "heads": about["heads"],
        "biases": True,
    }
    return (
        made_of(about)
        | numbers
        | {"block": "attention alone", "quantity": "res", "method": "centred", "reason": ""}
        | changes
    )


@pytest.fixture
def given() -> Tables:
    cells = abouts()
    first = {about["architecture"]: about for about in cells}.values()
    return {
        "extrapolation": [row for about in cells for row in lengths(about)],
        "probe": [probed(about) for about in first],
        "orders": [ordered(about) for about in first]
        + [ordered(about, quantity="sigma_ratio", order=9.0) for about in first],
    }


def reader(given: Tables, folder: Path) -> Callable[[str], pd.DataFrame]:
    for name, rows in given.items():
        tables.write(name, rows, folder / f"{name}.parquet")
    return lambda name: tables.read_frame(folder / f"{name}.parquet", name)


def drawn(given: Tables, folder: Path, **options: Any) -> style.Picture:
    with style.apply_style():
        picture: style.Picture = components.load("figure", "conflict")(reader(given, folder), **options)
    return picture


def saved(given: Tables, folder: Path) -> style.Picture:
    """Laid out as well, and in every kind of file."""
    picture = drawn(given, folder)
    style.save(picture, folder / "conflict.png")
    return picture


def numbers_of(picture: style.Picture) -> pd.DataFrame:
    """Of each architecture, by its name."""
    assert picture.numbers is not None
    return picture.numbers.set_index("name")


def test_a_point_has_the_numbers_of_three_tables(given: Tables, tmp_path: Path) -> None:
    picture = saved(given, tmp_path)
    rows, kept, _ = picture.figure.axes
    points = [[float(bar.lines[0].get_xdata()[0]) for bar in panel.containers] for panel in (rows, kept)]
    assert points == [[1.0, 1 / 32], [KEPT["gated"], KEPT["soft"]]]
    assert [text.get_text() for text in rows.get_yticklabels()] == ["gated", "soft"]
    numbers = numbers_of(picture)
    assert numbers.rows["soft"] == pytest.approx(1 / 32) and numbers.kept["soft"] == pytest.approx(0.75)
    assert (
        numbers.rows["gated"] == 1 and numbers.kept["gated"] == 0.5 and numbers.accuracy["gated"] == pytest.approx(0.41)
    )
    assert numbers.kept_deviation["soft"] == pytest.approx(0, abs=1e-9)
    assert "keep from 0.50 (gated) to 0.75 (soft) of their accuracy" in picture.caption
    assert numbers.missing["learned"] == "position learned admits no more"
