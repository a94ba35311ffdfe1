"""Check the settings, the means over seeds and the reasons of the scorecard."""

from typing import Any

import pandas as pd
import pytest
from cells_table import cell

from rankfall.measure.context import Context
from rankfall.overview.scorecard.measure import scorecard
from rankfall.report.headlines import by_name
from rankfall.report.part_numbers import by_parts, row_of
from rankfall.report.schema import CELL_COLUMNS
from rankfall.report.settings import name_settings


def lines(values: dict[str, list[float]], cells: list[dict[str, Any]]) -> pd.DataFrame:
    """Residuals by layer of the cells with these keys."""
    kind = {"place": "state", "quantity": "residual", "matrix_norm": "composite", "centre": "mean", "floor_share": 0.0}
    return pd.DataFrame(
        [one | kind | {"layer": layer, "value": value} for one in cells for layer, value in enumerate(values.get(one["key"], []))]
    )  # fmt: skip


def scores_of(**given: Any) -> list[dict[str, Any]]:
    return scorecard(Context(table=lambda name: pd.DataFrame(given[name]) if name in given else None))


def rows_of(setting: str = "sorting, init, depth 6", **given: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["architecture"], row["variant"]): row for row in scores_of(**given) if row["setting"] == setting}


CELLS = [
    *(cell(f"deep{seed}", "falls", seed, depth=6) for seed in (0, 1)),
    *(cell(f"flat{seed}", "falls", seed, depth=2) for seed in (0, 1)),
    *(cell(f"trained{seed}", "falls", seed, training="short", epochs=3, test_accuracy=0.75 + 0.1 * seed, steps=100, step_ms=5.0)
      for seed in (0, 1)),
    *(cell(f"stays{seed}", "stays", seed, depth=2, residual="add") for seed in (0, 1)),
]  # fmt: skip
VALUES = {
    "deep0": [0.8, 0.4], "deep1": [0.8, 0.4], "flat0": [0.8, 0.2], "flat1": [0.8, 0.05], "trained0": [0.8, 0.8], "trained1": [0.8, 0.8],
    "stays0": [0.8, 0.72], "stays1": [0.8, 0.1],
}  # fmt: skip


FLAT, SHORT = "sorting, init, depth 2", "sorting, short, depth 6"


def test_each_setting_is_a_row_of_its_own() -> None:
    """Untrained, trained, deep and flat networks of one architecture stood in one row, each number from another."""
    rows = scores_of(cells=CELLS, residuals=lines(VALUES, CELLS))
    assert {(row["architecture"], row["setting"]): row["residual_last"] for row in rows} == {
        ("falls", "sorting, init, depth 6"): pytest.approx(0.4),
        ("falls", FLAT): pytest.approx(0.125),
        ("falls", SHORT): pytest.approx(0.8),
        ("stays", FLAT): pytest.approx(0.41),
    }
    row = rows_of(FLAT, cells=CELLS, residuals=lines(VALUES, CELLS))["falls", ""]
    assert row["residual_last_deviation"] == pytest.approx(0.15 / 2**0.5)
    assert (row["residual_last_seeds"], row["residual_last_of"], row["residual_last_reason"]) == (2, 2, "")
    assert row["over_chance"] is None and "these are not" in row["over_chance_reason"]
    assert (row["cells"], row["done"], row["trained"], row["depth"]) == (2, 2, False, 2)
    trained = rows_of(SHORT, cells=CELLS, residuals=lines(VALUES, CELLS))["falls", ""]
    assert trained["over_chance"] == pytest.approx(0.55) and trained["over_chance_ceiling"] == pytest.approx(0.6)
    assert trained["accuracy"] == pytest.approx(0.8) and trained["accuracy_chance"] == pytest.approx(0.25)
    assert trained["accuracy_attainable"] == pytest.approx(0.85)
    assert trained["accuracy_each"] == "0=0.75 1=0.85"


def test_no_mean_over_the_seeds_that_happen_to_have_a_number() -> None:
    row = rows_of(FLAT, cells=CELLS, residuals=lines(VALUES, CELLS))["stays", ""]
    assert row["halving_depth"] is None and row["residual_last"] == pytest.approx(0.41)
    assert row["halving_depth_reason"] == "at layer 1 it is still 0.90 of the embedding's (in 1 of 2 seeds)"


def test_a_seed_that_diverged_is_named_and_not_counted() -> None:
    def flat(*keys: str) -> dict[str, Any]:
        gone = {"status": "diverged", "reason": "loss not finite at step 3"}
        cells = [row | gone if row["key"] in keys else row for row in CELLS]
        return rows_of(FLAT, cells=cells, residuals=lines(VALUES, cells))["falls", ""]

    row = flat("flat1")
    assert row["residual_last"] == pytest.approx(0.2) and row["residual_last_deviation"] is None
    assert (row["residual_last_seeds"], row["residual_last_of"], row["done"]) == (1, 2, 1)
    assert row["residual_last_lost"] == "diverged: loss not finite at step 3 (in 1 of 2 seeds)"
    row, why = flat("flat0", "flat1"), "diverged: loss not finite at step 3 (in 2 of 2 seeds)"
    assert row["residual_last"] is None and row["residual_last_of"] == 2
    assert row["residual_last_reason"] == row["residual_last_lost"] == why


def test_sizes_and_number_formats_are_settings() -> None:
    cells = [
        cell("a", "one", 0, width=48, heads=2, dtype="float32"),
        cell("b", "two", 0, width=64, heads=2),
        cell("c", "three", 0, dtype="float64", width=48, heads=2),
        cell("d", "one", 0, task="other", task_component="other(rho=0.5, length=8)"),
        cell("e", "one", 0, task="other", task_component="other(rho=1.0, length=8)"),
        cell("f", "one", 0, training="long", lr=0.1),
        cell("g", "one", 1, training="long", lr=0.2),
    ]
    assert name_settings(pd.DataFrame(cells)).tolist() == [
        "sorting, init, depth 6, width 48, dtype float32", "sorting, init, depth 6, width 64",
        "sorting, init, depth 6, width 48, dtype float64", "other, init, depth 6, rho 0.5", "other, init, depth 6, rho 1.0",
        "sorting, long, depth 6, lr 0.1", "sorting, long, depth 6, lr 0.2",
    ]  # fmt: skip


@pytest.mark.parametrize(("heads", "alone"), [((2, 2), False), ((2, 4), True)])
def test_a_size_that_nothing_reads_is_the_others(heads: tuple[int, int], alone: bool) -> None:
    """A mixer without heads beside those that have 2 is compared with them; beside 2 and 4 it is like neither."""
    cells = [cell(f"{count}{place}", f"with {count}", place, heads=count) for place, count in enumerate(heads)]
    label = name_settings(pd.DataFrame([*cells, cell("own", "own", 0, heads=None)]))
    assert (label.iloc[-1] not in set(label.iloc[:-1])) == alone
    rows = scores_of(cells=[*cells, cell("own", "own", 0, heads=None)])
    (own,) = [row for row in rows if row["architecture"] == "own"]
    assert own["heads"] == (None if alone else 2)


@pytest.mark.long
def test_every_field_of_a_cell_that_differs_is_in_a_label_or_a_variant() -> None:
    """A new field of a network or a training cannot become a mean over unlike networks."""
    for column in CELL_COLUMNS:
        if column.provenance or column.name in ("key", "seed", "status", "reason", "architecture", "norm_placement"):
            continue
        row = cell("a", "one", 0)
        value = row[column.name]
        other = not value if column.type == "bool" else value + 1 if isinstance(value, int | float) else f"not {value}"
        rows = scores_of(cells=[row, cell("b", "one", 0) | {column.name: other}])
        assert len({(score["variant"], score["setting"]) for score in rows}) == 2, column.name


def test_variants_that_the_grid_makes_are_rows_of_their_own() -> None:
    placed = {"init": "normal(deviation=0.2)", "position": "none"}
    rows = rows_of(cells=[cell("a", "one", 0), cell("b", "one", 0, normaliser="l2"), cell("c", "one", 0, **placed)])
    assert set(rows) == {("one", ""), ("one", "normaliser l2"), ("one", "position none, init normal")}
    assert rows["one", ""]["normaliser"] == "softmax"


ORDER = {
    "block": "attention alone", "attention": "multihead", "normaliser": "softmax", "position": "none", "mask": "none", "sentinels": "none",
    "heads": 2, "biases": True, "quantity": "res", "order": 3.0, "uncertainty": 1e-9, "draws": 8, "reason": "",
}  # fmt: skip


def test_order_of_the_same_components_with_the_same_options() -> None:
    cells = [
        cell("a", "softmax", 0, residual="none", norm="none", position="learned(mapped=false)"),
        cell("b", "rope", 0, position="rope(base=500.0, interpolated=false, log_n=null)"),
        cell("c", "skip", 0, norm="layer(eps=1e-12)", position="none"),
        cell("d", "odd", 0, norm="none", mlp="gelu", mlp_residual="none", position="none"),
        cell("e", "blunt", 0, norm="layer(eps=1.0)", position="none"),
    ]
    changes = [{}, {"heads": 1, "order": 2.5}, {"biases": False, "order": 9.0}, {"quantity": "sigma_ratio", "order": 9.0},
               {"position": "rope", "order": 1.0}, {"block": "skip, post-norm", "order": 1.0}, {"block": "skip", "order": 8.0}]  # fmt: skip
    orders = [ORDER | change for change in changes]
    rows = {name: row for (name, _), row in rows_of(cells=cells, orders=orders).items()}
    # A position in the states is no part of the attention.
    assert rows["softmax"]["order"] == rows["softmax"]["block_order"] == 3.0
    assert rows["rope"]["order"] is None  # another base than the table's
    assert rows["skip"]["block_order"] == 1.0
    for name in ("odd", "blunt"):  # the block was measured with another eps than this norm's
        assert rows[name]["block_order"] is None and "no block" in rows[name]["block_order_reason"]


def test_seeds_of_an_architecture_share_its_readings() -> None:
    cells = [cell(f"a{seed}", "one", seed, epochs=3, training="short") for seed in range(5)]
    timed = [
        {"key": one["key"], "cost_ms": 2.0, "readings": "0=1.0 1=2.0 2=6.0", "cost_ms_reason": ""} for one in cells
    ]
    row = rows_of("sorting, short, depth 6", cells=cells, cost=timed)["one", ""]
    assert (row["cost_ms"], row["cost_ms_seeds"], row["cost_ms_of"]) == (2.0, 3, 5)
    assert row["cost_ms_each"] == "0=1.0 1=2.0 2=6.0" and row["cost_ms_deviation"] == pytest.approx(7**0.5)


def test_nothing_is_scored_without_cells() -> None:
    assert scores_of() == [] == scores_of(cells=[])


def test_the_best_learning_rate_of_each_architecture_is_one_more_setting() -> None:
    accuracies = {("falls", 0.001): 0.6, ("falls", 0.01): 0.8, ("stays", 0.001): 0.9, ("stays", 0.01): 0.7}
    cells = [
        cell(f"{name}{rate}{seed}", name, seed, training="short", epochs=3, lr=rate, test_accuracy=accuracy, steps=9)
        for (name, rate), accuracy in accuracies.items()
        for seed in (0, 1)
    ]
    best = rows_of("sorting, short, depth 6, best of 2 lr by test accuracy", cells=cells)
    assert {key: row["accuracy"] for key, row in best.items()} == {
        ("falls", "lr 0.01"): 0.8,
        ("stays", "lr 0.001"): 0.9,
    }
    single = [one for one in cells if one["lr"] == 0.01]
    assert not [row for row in scores_of(cells=single) if "best" in row["setting"]]


def test_a_component_that_no_measure_names_is_named() -> None:
    """A normaliser of one's own had a blank order, and nothing said that a measure has to name it."""
    parts = {"attention": "multihead", "normaliser": "l2", "position": "none", "mask": "none", "sentinels": "none"}
    measured = parts | {"normaliser": "softmax", "block": "attention alone", "biases": True, "order": 3.0}
    table = pd.DataFrame([measured | {"heads": 2, "uncertainty": 0.1, "draws": 8, "quantity": "res"}])
    headline = by_name("order")
    why = row_of(headline, by_parts(table, headline), parts | {"residual": "none"})
    assert why == "the table has no normaliser l2: name it in the options of the measure orders"
