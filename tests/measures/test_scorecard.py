"""Guards the choice of networks, the means over seeds and the reasons of the scorecard."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankfall import components
from rankfall.measures._context import Context
from rankfall.measures.scorecard import TABLES, scorecard
from rankfall.report import style, tables
from rankfall.report.headlines import HEADLINES
from rankfall.report.schema import CELL_COLUMNS
from rankfall.report.variants import DESIGN, SETTING, USUAL

USED = {"float": 0.0, "int": 1, "text": "none", "bool": True}


def cell(key: str, architecture: str, seed: int, **fields: Any) -> dict[str, Any]:
    """A row of the table of cells: what is not said is as in every other row."""
    row = {column.name: USED[column.type] for column in CELL_COLUMNS} | USED_DESIGN
    row |= {
        "key": key,
        "architecture": architecture,
        "seed": seed,
        "task": "sorting",
        "training": "init",
        "epochs": 0,
        "depth": 6,
    }
    row |= {"status": "done", "reason": "", "steps": 0, "seconds": 0.0, "chance": 0.25, "test_accuracy": 0.25}
    row |= dict.fromkeys(("train_loss", "train_accuracy", "test_loss"), 0.0)
    return row | fields


USED_DESIGN = {**USUAL, "norm_placement": "post", "block": "attention"}


def lines(values: dict[str, list[float]], cells: list[dict[str, Any]]) -> pd.DataFrame:
    """Residuals by layer of the cells with these keys."""
    kind = {"place": "state", "quantity": "residual", "matrix_norm": "composite", "centre": "mean"}
    return pd.DataFrame(
        [one | kind | {"layer": layer, "value": value} for one in cells for layer, value in enumerate(values.get(one["key"], []))]
    )  # fmt: skip


def rows_of(**given: Any) -> dict[tuple[str, str], dict[str, Any]]:
    rows = scorecard(Context(table=lambda name: pd.DataFrame(given[name]) if name in given else None))
    return {(row["architecture"], row["variant"]): row for row in rows}


CELLS = [
    *(cell(f"deep{seed}", "falls", seed, depth=6) for seed in (0, 1)),
    *(cell(f"flat{seed}", "falls", seed, depth=2) for seed in (0, 1)),
    *(cell(f"trained{seed}", "falls", seed, training="short", epochs=3, test_accuracy=0.75 + 0.1 * seed, steps=100, seconds=0.5)
      for seed in (0, 1)),
    *(cell(f"stays{seed}", "stays", seed, depth=2, residual="add") for seed in (0, 1)),
]  # fmt: skip
VALUES = {
    "deep0": [0.8, 0.4], "deep1": [0.8, 0.4], "flat0": [0.8, 0.2], "flat1": [0.8, 0.05], "trained0": [0.8, 0.8], "trained1": [0.8, 0.8],
    "stays0": [0.8, 0.72], "stays1": [0.8, 0.1],
}  # fmt: skip


def test_mean_over_seeds_at_the_setting_that_most_architectures_have() -> None:
    row = rows_of(cells=CELLS, residuals=lines(VALUES, CELLS))["falls", ""]
    assert row["residual_last"] == pytest.approx(
        0.125
    )  # of depth 2, which both have, untrained: not of depth 6, nor the trained
    assert row["residual_last_deviation"] == pytest.approx(0.15 / 2**0.5)
    assert (row["residual_last_seeds"], row["residual_last_at"], row["residual_last_reason"]) == (
        2,
        "sorting, init, depth 2",
        "",
    )
    assert row["over_chance"] == pytest.approx(0.55) and row["over_chance_at"] == "sorting, short, depth 6"
    assert row["step_ms"] == pytest.approx(5.0)
    assert (row["cells"], row["done"]) == (6, 6)


def test_no_mean_over_the_seeds_that_happen_to_have_a_number() -> None:
    row = rows_of(cells=CELLS, residuals=lines(VALUES, CELLS))["stays", ""]
    assert row["halving_depth"] is None and row["residual_last"] == pytest.approx(0.41)
    assert (
        row["halving_depth_reason"]
        == "sorting, init, depth 2: at layer 1 it is still 0.90 of the embedding's (in 1 of 2 seeds)"
    )


def test_a_network_that_diverged_is_the_reason() -> None:
    cells = [
        one if one["key"] != "flat1" else one | {"status": "diverged", "reason": "loss not finite at step 3"}
        for one in CELLS
    ]
    row = rows_of(cells=cells, residuals=lines(VALUES, cells))["falls", ""]
    assert row["residual_last"] is None
    assert row["residual_last_reason"] == "sorting, init, depth 2: loss not finite at step 3 (in 1 of 2 seeds)"
    assert row["done"] == 5


def test_reasons_without_a_table_or_a_measure() -> None:
    rows = rows_of(cells=CELLS, residuals=lines(VALUES, CELLS[:4]))
    assert rows["falls", ""]["kept_reason"] == "this run does not make the table extrapolation"
    assert rows["stays", ""]["residual_last_reason"] == "its networks were not measured"
    assert rows["stays", ""]["over_chance_reason"] == "none of its trained networks was measured"
    for row in rows.values():
        for headline in HEADLINES:
            assert (row[headline.name] is None) == (row[f"{headline.name}_reason"] != "")


def test_variants_that_the_grid_makes_are_rows_of_their_own() -> None:
    cells = [
        cell("a", "one", 0),
        cell("b", "one", 0, normaliser="l2"),
        cell("c", "one", 0, init="normal(deviation=0.2)", position="none"),
    ]
    rows = rows_of(cells=cells)
    assert set(rows) == {("one", ""), ("one", "normaliser l2"), ("one", "position none, init normal")}
    assert rows["one", ""]["normaliser"] == "softmax"


def test_variants_that_differ_in_options_alone_have_names_of_their_own() -> None:
    cells = [cell("a", "one", 0)]
    cells += [cell(f"b{i}", "one", 0, init=f"normal(deviation={i})") for i in (0.02, 0.1)]
    cells += [cell(f"c{i}", "one", 0, norm="none", init=f"normal(deviation={i})") for i in (0.1, 0.3)]
    variants = {variant for _, variant in rows_of(cells=cells)}
    assert variants == {
        *("", "init normal 0.02", "init normal 0.1"),
        *("norm none, init normal 0.1", "norm none, init normal 0.3"),
    }


def order(**fields: Any) -> dict[str, Any]:
    row = {
        "block": "attention alone",
        "attention": "multihead",
        "normaliser": "softmax",
        "position": "none",
        "mask": "none",
    }
    row |= {
        "sentinels": "none",
        "heads": 2,
        "biases": True,
        "quantity": "res",
        "order": 3.0,
        "uncertainty": 1e-9,
        "draws": 8,
        "reason": "",
    }
    return row | fields


def test_order_of_the_same_components_with_the_same_options() -> None:
    cells = [
        cell("a", "softmax", 0, residual="none", norm="none", position="learned(mapped=false)"),
        cell("b", "rope", 0, position="rope(base=500.0, interpolated=false, log_n=null)"),
        cell("c", "skip", 0, norm="layer(eps=1e-12)", position="none"),
        cell("d", "odd", 0, norm="none", mlp="gelu", mlp_residual="none", position="none"),
    ]
    orders = [order(), order(heads=1, order=2.5), order(biases=False, order=9.0), order(quantity="sigma_ratio", order=9.0),
              order(position="rope", order=1.0), order(block="skip, post-norm", order=1.0), order(block="skip", order=8.0)]  # fmt: skip
    rows = {name: row for (name, _), row in rows_of(cells=cells, orders=orders).items()}
    assert (
        rows["softmax"]["order"] == rows["softmax"]["block_order"] == 3.0
    )  # a position in the states is no part of the attention
    assert rows["rope"]["order"] is None  # another base than the table's
    assert rows["skip"]["block_order"] == 1.0
    assert rows["odd"]["block_order"] is None and "no block" in rows["odd"]["block_order_reason"]


def test_every_column_of_a_cell_is_design_setting_or_neither() -> None:
    names = {column.name for column in CELL_COLUMNS if not column.provenance}
    assert set(SETTING) | set(DESIGN) | {"key", "seed", "status", "reason", "architecture"} == names
    assert not set(SETTING) & set(DESIGN)
    assert {headline.table for headline in HEADLINES} == set(TABLES)


def test_table_and_figure(tmp_path: Path) -> None:
    rows = list(rows_of(cells=CELLS, residuals=lines(VALUES, CELLS)).values())
    tables.write("scorecard", rows, tmp_path / "scorecard.parquet")
    with style.applied():
        picture = components.load("figure", "scorecard")(
            lambda name: tables.read_frame(tmp_path / f"{name}.parquet", name)
        )
        style.save(picture, tmp_path / "scorecard.png")
    written = {text.get_text() for text in picture.figure.axes[0].texts}
    assert "0.125±0.106" in written and "–" in written
    assert "falls loses rank fastest" in picture.caption
