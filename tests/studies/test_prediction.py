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
    rates = chosen_rates(pd.DataFrame(rows), [3, 4]).set_index("architecture").lr
    # The best; the smallest of equal ones; (1 - 1) / 2 is less than 0.0125.
    assert rates.to_dict() == {"a": 0.1, "b": 0.1, "c": 0.1}


def test_accuracy_over_chance_and_over_what_a_mask_leaves_attainable() -> None:
    cells = [cell("a", 0, 0.1, 0.6), cell("a", 1, 0.1, 1.0), cell("a", 2, 0.1, 1.0, status="diverged")]
    shares = over_chance(pd.DataFrame(cells))
    assert shares.tolist()[:2] == pytest.approx([0.5, 1]) and math.isnan(shares.iloc[2])
    masked = [cell("a", 0, 0.1, 0.6, attainable=0.6), cell("a", 1, 0.1, 0.4, attainable=0.6)]
    hopeless = cell("a", 0, 0.1, 0.24, attainable=0.2)  # its mask leaves chance alone
    assert over_chance(pd.DataFrame([*masked, hopeless])).tolist() == pytest.approx([1.0, 0.5, 0.05])


def curves_of(cells: pd.DataFrame, *accuracies: list[float]) -> pd.DataFrame:
    """Return rows of the table of training: the test accuracy of each cell by epoch, and 1 on the training set."""
    return pd.DataFrame(
        [
            {"key": key, "task": "sorting", "epoch": epoch, "split": split, "metric": "accuracy", "value": value}
            for key, values in zip(cells.key, accuracies)
            for epoch, test in enumerate(values, 1)
            for split, value in (("train", 1.0), ("test", test))
        ]
    )


def test_steps_are_those_of_the_first_epoch_at_the_threshold() -> None:
    cells = pd.DataFrame([cell("a", 0, 0.1, 1.0), cell("b", 0, 0.1, 0.3)])
    curves, batch = curves_of(cells, [0.2, 0.59, 0.61, 0.9], [0.2, 0.3, 0.3, 0.3]), int(cells.batch[0])
    sizes = {"sorting": 25 * batch}
    steps = steps_to(curves, cells, sizes, {}, 0.5)
    assert steps.iloc[0] == 75 and math.isnan(steps.iloc[1])
    assert steps_to(curves, cells, sizes, {"sorting": 0.1}, 0.5).tolist() == [50, 50]
    stopped = cells.assign(steps=80)  # diverged, or below its loss, in the fourth epoch
    assert steps_to(curves, stopped, sizes, {}, 0.5).iloc[0] == 75
    partial = {"sorting": 25 * batch - batch // 2}  # the last batch of an epoch is a part of one
    assert steps_to(curves, cells, partial, {}, 0.5).iloc[0] == 75
    masked = pd.DataFrame([cell("a", 0, 0.1, 0.6, attainable=0.6)])  # half of what is attainable is 0.4
    assert steps_to(curves_of(masked, [0.3, 0.41, 0.6]), masked, {"sorting": 10 * batch}, {}, 0.5).iloc[0] == 20


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
    assert largest_depths(pd.DataFrame(rows)).tolist() == [8.0] * 6 + [0.0] * 6


def test_folds_hold_whole_architectures_and_all_of_them() -> None:
    names = [f"net{number}" for number in range(25)] * 3
    folds = deal_folds(names, 10)
    assert (folds[:25] == folds[25:50]).all() and set(folds) == set(range(10))
    assert sorted(np.bincount(folds[:25])) == [2] * 5 + [3] * 5
    assert set(deal_folds(["a", "b"], 10)) == {0, 1}


def tables() -> dict[str, pd.DataFrame]:
    """Return tables of three architectures at birth and after training; `c` does not learn."""
    cells = [cell(name, seed, 0.0, 0.2) for name in "abc" for seed in (0, 1)]
    cells += [
        cell(name, seed, lr, 0.2 + 0.8 * lr * (name != "c"))
        for name in "abc"
        for seed in (0, 1, 3)
        for lr in (0.5, 0.9)
    ]
    born = [row for row in cells if not row["epochs"]]
    states = [
        {"key": row["key"], "layer": layer, "left_out": left_out, "quantity": quantity, "value": value}
        for number, row in enumerate(born)
        for left_out in ("nothing", "both")
        for layer in (0, 1, 2)
        for quantity, value in (("residual", 10.0 ** -(number + layer)), ("norm", 2.0 * 10**layer), ("cosine", 0.5))
    ]
    sizes = [{"key": row["key"], "part": part, "count": 7} for row in born for part in ("all", "mlp")]
    data = [{"task": "sorting", "split": split, "samples": 100} for split in ("train", "test")]
    named = {"cells": cells, "datasets": data, "states": states, "parameters": sizes}
    return {name: pd.DataFrame(rows) for name, rows in named.items()}


def test_a_network_stands_beside_itself_at_birth() -> None:
    training = pd.DataFrame({name: [] for name in ("key", "task", "epoch", "split", "metric", "value")})
    rows = prediction(Context(table=(tables() | {"training": training}).get))
    assert [(row["architecture"], row["seed"]) for row in rows] == [(name, seed) for name in "abc" for seed in (0, 1)]
    for number, row in enumerate(rows):
        ends = (0.5, 0.0, "stuck", False) if row["architecture"] == "c" else (0.9, 0.9, "trained", True)
        assert (row["lr"], pytest.approx(row["over_chance"]), row["fate"], row["trains"]) == ends
        assert row["birth_residual"] == pytest.approx(-(number + 2)) and row["birth_norm_growth"] == pytest.approx(2)
        assert (row["birth_cosine"], row["parameters"]) == (0.5, 7)
        assert row["birth_entropy"] is None and row["birth_order"] is None
    conform("prediction", rows)


def test_predictors_by_hand() -> None:
    born = pd.DataFrame([cell("a", 0, 0.0, 0.2)])
    key = born.key[0]
    norms = {"queries": (1e-4, 1e-2), "keys": (1, 0), "values": (1e-2, 1e-2), "input": (1e-1, 1e-3)}
    gradients = pd.DataFrame(
        [
            {"key": key, "layer": layer, "of": of, "value": value, "loss": 2.5}
            for of, values in norms.items()
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
    about = {"key": key, "left_out": "nothing", "quantity": "entropy"}
    weights = pd.DataFrame(
        [
            about | {"layer": layer, "attention_head": head, "value": layer + (head or 0)}
            for layer in (1, 2)
            for head in (None, 1)
        ]
    )
    assert value("entropy", weights) == 1.5
    without = gradients.assign(value=gradients.value.where(gradients.of != "queries"))
    assert math.isnan(value("gradient_queries", without)) and math.isnan(value("gradient_ratio", without))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cells: cells[cells.epochs > 0], "left at birth"),
        (lambda cells: cells[cells.epochs == 0], "no network of this run is trained"),
        (lambda cells: pd.concat([cells, cells[cells.lr == 0.9].head(1)]), "trained twice at lr 0.9"),
    ],
)
def test_a_run_that_is_no_study_is_refused(change: Any, message: str) -> None:
    with pytest.raises(RankfallError, match=message):
        prediction(Context(table={"cells": change(tables()["cells"])}.get))
