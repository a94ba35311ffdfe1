"""Check that the points of the conflict have the numbers of three tables, joined by what an architecture is made of."""

from pathlib import Path
from typing import Any

import pytest
from helpers import config

from rankfall import components
from rankfall.report import style, tables
from rankfall.report.part_numbers import MADE_OF
from rankfall.report.rows import cell_columns
from rankfall.run.plan import make_plan

ROWS = {"softmax": 1, "l2": 32}
ORDERS = {"softmax": 3.0, "l2": 1.0}
PROBE = {
    "depth": 2, "tokens": 32, "untrained_least": 1, "draws": 8, "argument": "rows sum to one", "argument_reason": "",
    "agreement": "agree", "reason": "",
}  # fmt: skip
ORDER = {
    "draws": 3, "identical_draws": 0, "biases": True, "block": "attention alone", "method": "centred", "reason": "",
}  # fmt: skip
KEPT = {"soft": 0.75, "learned": None, "gated": 0.5}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "soft": {"position": "rope"},
    "learned": {"position": "learned"},
    "gated": {"position": "rope", "attention": {"name": "gau", "key_width": 8}, "normaliser": "l2"},
}


def abouts() -> list[dict[str, Any]]:
    """Return what each of two networks of an architecture is."""
    raw = config(training={"epochs": 2}, grid={"task": "words", "architecture": list(KEPT), "seed": "0..1"})
    raw["tasks"] = {"words": {"task": "masked_text", "length": 8, "longer": None}}
    raw["architectures"] = {name: {"width": 8} | given for name, given in ARCHITECTURES.items()}
    return [cell_columns(cell, {"status": "done"}) for cell in make_plan(raw).cells]


def lengths(about: dict[str, Any]) -> list[dict[str, Any]]:
    """Return rows of extrapolation, at one and four times the trained length."""
    kept, base = KEPT[about["architecture"]], 0.4 + 0.02 * about["seed"]
    row = about | {"trained_length": 8, "chance": 0.05, "targets": 100, "loss": 3.0, "loss_trained": 3.0}
    row |= {"accuracy_trained": base, "times": 1.0, "length": 8, "accuracy": base, "kept": 1.0, "refused": ""}
    longer = row | {"times": 4.0, "length": 32}
    if kept is None:
        refused = dict.fromkeys(("accuracy", "loss", "accuracy_trained", "loss_trained", "kept"))
        return [row, longer | refused | {"targets": 0, "refused": "position learned admits no more"}]
    return [row, longer | {"accuracy": base * kept, "kept": kept}]


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
