"""Networks at birth and their ends: the rule for learning rates, outcomes, which network was which at birth, and predictors by hand."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cells_table import cell as row_of_cell

from rankfall.errors import RankfallError
from rankfall.measure.context import Context
from rankfall.report.conform import conform
from studies.prediction.prediction.measure import deal_folds, prediction
from studies.prediction.prediction.outcomes import chosen_rates, fate, largest_depths, over_chance, steps_to
from studies.prediction.prediction.predictors import predictor_values


def cell(architecture: str, seed: int, lr: float, accuracy: float, **fields: Any) -> dict[str, Any]:
    """Return a row of the table of cells; `lr` 0: at birth."""
    trained = {"lr": lr, "epochs": 4 if lr else 0, "training": f"lr {lr}" if lr else "birth", "steps": 100 if lr else 0}
    ends = {"chance": 0.2, "attainable": None, "test_accuracy": accuracy}
    key = "-".join(map(str, ("sorting", architecture, 2, seed, lr)))
    return row_of_cell(key, architecture, seed, depth=2, **trained | ends | fields)


def test_the_rate_is_chosen_by_the_seeds_of_the_selection_alone() -> None:
    rows = [
        cell("a", 3, 0.1, 0.9), cell("a", 3, 0.2, 0.5), cell("a", 0, 0.1, 0.2), cell("a", 0, 0.2, 1.0),
        cell("b", 3, 0.1, 0.6), cell("b", 3, 0.2, 0.6),
        cell("c", 3, 0.1, 0.21), cell("c", 4, 0.1, 0.21), cell("c", 3, 0.2, 1.0), cell("c", 4, 0.2, math.nan, status="diverged"),
    ]  # fmt: skip
    found = chosen_rates(pd.DataFrame(rows), [3, 4]).set_index("architecture").lr
    assert found.to_dict() == {
        "a": 0.1,
        "b": 0.1,
        "c": 0.1,
    }  # the best; the smallest of equal ones; (1 - 1) / 2 is less than 0.0125


def test_accuracy_over_chance() -> None:
    found = over_chance(
        pd.DataFrame([cell("a", 0, 0.1, 0.6), cell("a", 1, 0.1, 1.0), cell("a", 2, 0.1, 1.0, status="diverged")])
    )
    assert found.tolist()[:2] == pytest.approx([0.5, 1]) and math.isnan(found.iloc[2])


def test_a_network_is_compared_with_what_its_mask_leaves_attainable() -> None:
    cells = pd.DataFrame([cell("a", 0, 0.1, 0.6, attainable=0.6), cell("a", 1, 0.1, 0.4, attainable=0.6)])
    assert over_chance(cells).tolist() == pytest.approx([1.0, 0.5])
    hopeless = pd.DataFrame([cell("a", 0, 0.1, 0.24, attainable=0.2)])  # of a mask that leaves chance alone
    assert over_chance(hopeless).tolist() == pytest.approx([0.05])
    curves = [
        {"key": cells.key[0], "task": "sorting", "epoch": epoch, "split": "test", "metric": "accuracy", "value": value}
        for epoch, value in enumerate([0.3, 0.41, 0.6], 1)
    ]
    batch = int(cells.batch[0])
    assert steps_to(pd.DataFrame(curves), cells, {"sorting": 10 * batch}, {}, 0.5).iloc[0] == 20


def test_steps_are_those_of_the_first_epoch_at_the_threshold() -> None:
    cells = pd.DataFrame([cell("a", 0, 0.1, 1.0), cell("b", 0, 0.1, 0.3)])
    curves = [
        {"key": key, "task": "sorting", "epoch": epoch, "split": split, "metric": "accuracy", "value": value}
        for key, values in zip(cells.key, ([0.2, 0.59, 0.61, 0.9], [0.2, 0.3, 0.3, 0.3]))
        for epoch, value in enumerate(values, 1)
        for split in ("train", "test")
    ]
    curves[0]["value"] = 1.0  # of the training set
    sizes = {"sorting": 25 * int(cells.batch[0])}
    found = steps_to(pd.DataFrame(curves), cells, sizes, {}, 0.5)
    assert found.iloc[0] == 75 and math.isnan(found.iloc[1])
    assert steps_to(pd.DataFrame(curves), cells, sizes, {"sorting": 0.1}, 0.5).tolist() == [50, 50]
    stopped = cells.assign(steps=80)  # diverged, or below its loss, in the fourth epoch
    assert steps_to(pd.DataFrame(curves), stopped, sizes, {}, 0.5).iloc[0] == 75
    part = {
        "sorting": 25 * int(cells.batch[0]) - int(cells.batch[0]) // 2
    }  # the last batch of an epoch is a part of one
    assert steps_to(pd.DataFrame(curves), cells, part, {}, 0.5).iloc[0] == 75


def test_fates() -> None:
    assert [fate(share, 0.5) for share in (0.5, 0.49, 0.1, 0.09, -0.2, math.nan)] == [
        "trained", "slow", "slow", "stuck", "stuck", "diverged",
    ]  # fmt: skip


def test_the_largest_depth_is_that_of_half_of_the_seeds() -> None:
    rows = [
        {"task": "t", "architecture": name, "depth": depth, "seed": seed, "trains": seed in trained}
        for name, ends in {"a": {2: (0, 1), 8: (0,), 32: ()}, "b": {2: (), 8: (), 32: ()}}.items()
        for depth, trained in ends.items()
        for seed in (0, 1)
    ]
    found = largest_depths(pd.DataFrame(rows))
    assert found.tolist() == [8.0] * 6 + [0.0] * 6


def test_folds_hold_whole_architectures_and_all_of_them() -> None:
    names = [f"net{number}" for number in range(25)] * 3
    found = deal_folds(names, 10)
    assert (found[:25] == found[25:50]).all() and set(found) == set(range(10))
    assert sorted(np.bincount(found[:25])) == [2] * 5 + [3] * 5
    assert set(deal_folds(["a", "b"], 10)) == {0, 1}


def tables() -> dict[str, pd.DataFrame]:
    names, seeds = ("a", "b", "c"), (0, 1)
    cells = [cell(name, seed, 0.0, 0.2) for name in names for seed in seeds]
    cells += [
        cell(name, seed, lr, 0.2 + 0.8 * lr * (name != "c"))
        for name in names
        for seed in (*seeds, 3)
        for lr in (0.5, 0.9)
    ]
    born = [one for one in cells if not one["epochs"]]
    states = [
        {"key": one["key"], "layer": layer, "left_out": left_out, "quantity": quantity, "value": value}
        for place, one in enumerate(born)
        for left_out in ("nothing", "both")
        for layer in (0, 1, 2)
        for quantity, value in (("residual", 10.0 ** -(place + layer)), ("norm", 2.0 * 10**layer), ("cosine", 0.5))
    ]
    sizes = [{"key": one["key"], "part": part, "count": 7} for one in born for part in ("all", "mlp")]
    data = [{"task": "sorting", "split": split, "samples": 100} for split in ("train", "test")]
    return {
        "cells": pd.DataFrame(cells),
        "datasets": pd.DataFrame(data),
        "states": pd.DataFrame(states),
        "parameters": pd.DataFrame(sizes),
    }


def test_a_network_stands_beside_itself_at_birth() -> None:
    given = tables()
    given["training"] = pd.DataFrame({name: [] for name in ("key", "task", "epoch", "split", "metric", "value")})
    rows = prediction(Context(table=given.get))
    assert [(row["architecture"], row["seed"]) for row in rows] == [(name, seed) for name in "abc" for seed in (0, 1)]
    for place, row in enumerate(rows):
        assert row["lr"] == (0.5 if row["architecture"] == "c" else 0.9)
        assert row["over_chance"] == pytest.approx(0.0 if row["architecture"] == "c" else 0.9)
        assert (row["fate"], row["trains"]) == (("stuck", False) if row["architecture"] == "c" else ("trained", True))
        assert row["birth_residual"] == pytest.approx(-(place + 2)) and row["birth_norm_growth"] == pytest.approx(2)
        assert (row["birth_cosine"], row["parameters"]) == (0.5, 7)
        assert row["birth_entropy"] is None and row["birth_order"] is None
    conform("prediction", rows)


def test_predictors_by_hand() -> None:
    born = pd.DataFrame([cell("a", 0, 0.0, 0.2)])
    key = born.key[0]
    gradients = pd.DataFrame(
        [
            {"key": key, "layer": layer, "of": of, "value": value, "loss": 2.5}
            for of, values in {
                "queries": (1e-4, 1e-2),
                "keys": (1, 0),
                "values": (1e-2, 1e-2),
                "input": (1e-1, 1e-3),
            }.items()
            for layer, value in enumerate(values, 1)
        ]
    )

    def value(name: str, table: pd.DataFrame) -> float:
        return float(predictor_values(name, table, born)[key])

    assert value("gradient_queries", gradients) == pytest.approx(-3)
    assert value("gradient_keys", gradients) == pytest.approx(-15)  # none is as little as 1e-30
    assert value("gradient_ratio", gradients) == pytest.approx(-1)
    assert value("gradient_growth", gradients) == pytest.approx(-2)
    assert value("loss", gradients) == 2.5
    weights = pd.DataFrame(
        [
            {
                "key": key,
                "layer": layer,
                "attention_head": head,
                "left_out": "nothing",
                "quantity": "entropy",
                "value": layer + (head or 0),
            }
            for layer in (1, 2)
            for head in (None, 1)
        ]
    )
    assert value("entropy", weights) == 1.5
    without = gradients.assign(value=gradients.value.where(gradients.of != "queries"))
    assert math.isnan(value("gradient_queries", without)) and math.isnan(value("gradient_ratio", without))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cells: cells[cells.epochs > 0], "left at birth"),
        (lambda cells: cells[cells.epochs == 0], "no network of this run is trained"),
        (lambda cells: pd.concat([cells, cells[cells.lr == 0.9].head(1)]), "trained twice at lr 0.9"),
    ],
)
def test_a_run_that_is_no_study_is_refused(change: Any, said: str) -> None:
    with pytest.raises(RankfallError, match=said):
        prediction(Context(table={"cells": change(tables()["cells"])}.get))
