"""Check that the points of the conflict have the numbers of three tables, joined by what an architecture is made of."""

from pathlib import Path

import pytest
from masked_rows import KEPT, abouts, lengths

from rankfall import components
from rankfall.report import style, tables
from rankfall.report.part_numbers import MADE_OF

ROWS = {"softmax": 1, "l2": 32}
ORDERS = {"softmax": 3.0, "l2": 1.0}
PROBE = {
    "depth": 2, "tokens": 32, "untrained_least": 1, "draws": 8, "argument": "rows sum to one", "argument_reason": "",
    "agreement": "agree", "reason": "",
}  # fmt: skip
ORDER = {
    "draws": 3, "identical_draws": 0, "biases": True, "block": "attention alone", "method": "centred", "reason": "",
}  # fmt: skip


def test_a_point_has_the_numbers_of_three_tables(tmp_path: Path) -> None:
    cells = abouts()
    written = {"extrapolation": [row for about in cells for row in lengths(about)], "probe": [], "orders": []}
    for about in {about["architecture"]: about for about in cells}.values():
        parts = {column: about[column] for column in MADE_OF}
        written["probe"].append(parts | PROBE | {"untrained_rows": ROWS[about["normaliser"]]})
        order = parts | ORDER | {"heads": about["heads"]}
        for quantity, value in (("res", ORDERS[about["normaliser"]]), ("sigma_ratio", 9.0)):
            written["orders"].append(order | {"quantity": quantity, "order": value})
    for name, rows in written.items():
        tables.write(name, rows, tmp_path / f"{name}.parquet")
    with style.apply_style():
        read = lambda name: tables.read_frame(tmp_path / f"{name}.parquet", name)  # noqa: E731
        picture: style.Picture = components.load("figure", "conflict")(read)
    style.save(picture, tmp_path / "conflict.png")
    shown, kept, _ = picture.figure.axes
    points = [[float(bar.lines[0].get_xdata()[0]) for bar in panel.containers] for panel in (shown, kept)]
    assert points == [[1.0, 1 / 32], [KEPT["gated"], KEPT["soft"]]]
    assert [text.get_text() for text in shown.get_yticklabels()] == ["gated", "soft"]
    assert picture.numbers is not None
    soft, gated, learned = (picture.numbers.set_index("name").loc[name] for name in ("soft", "gated", "learned"))
    assert (soft.rows, soft.kept, soft.order) == pytest.approx((1 / 32, 0.75, 3.0))
    assert (gated.rows, gated.kept, gated.order, gated.accuracy) == pytest.approx((1, 0.5, 1.0, 0.41))
    assert soft.kept_deviation == pytest.approx(0, abs=1e-9)
    assert "keep from 0.50 (gated) to 0.75 (soft) of their accuracy" in picture.caption
    assert learned.missing == "position learned admits no more"
