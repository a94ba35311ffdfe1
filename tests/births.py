"""Make synthetic tables of networks at birth and of their outcomes, of which the answer is known."""

from typing import Any

import numpy as np
import pytest
from pandas import DataFrame

from studies.prediction.prediction.measure import deal_folds
from studies.prediction.prediction.rows import BIRTH, PARTS
from studies.prediction.prediction_scores import measure
from studies.prediction.prediction_scores.scores import SIZE, STATISTICS

KNOWN = ("residual", "norm_growth", "gradient_queries", "own_share")  # predictors that have values


def make_networks(architectures: int = 40, seeds: int = 2, tasks: tuple[str, ...] = ("a",), seed: int = 0) -> DataFrame:
    """Return networks whose known predictors are noise: a number of the architecture plus one of the network; depth and parts decide
    nothing."""
    rng = np.random.default_rng(seed)
    table = DataFrame(
        [
            {"task": task, "architecture": f"net{number:02d}", "depth": depth, "seed": s}
            for task in tasks
            for number in range(architectures)
            for depth in (2, 8, 32)
            for s in range(seeds)
        ]
    )

    def draw_by_architecture() -> Any:
        return table.architecture.map({name: rng.normal() for name in table.architecture.unique()})

    table["over_chance"] = 1 / (1 + np.exp(-(draw_by_architecture() + rng.normal(size=len(table)))))
    table["fold"] = deal_folds(table.architecture, 10)
    table["parameters"] = 1000.0 + draw_by_architecture()
    table = table.assign(**dict.fromkeys(PARTS, "same"), **{f"birth_{name}": np.nan for name in BIRTH})
    for name in KNOWN:
        table[f"birth_{name}"] = draw_by_architecture() + rng.normal(size=len(table))
    return add_outcomes(table)


def add_outcomes(table: DataFrame, over_chance: Any = None) -> DataFrame:
    """Return the table with outcomes that follow from `over_chance`, by default the table's own."""
    table = table if over_chance is None else table.assign(over_chance=over_chance)
    trains = table.over_chance >= 0.5
    deepest = table[trains].groupby(["task", "architecture"]).depth.max()
    return table.assign(
        threshold=0.5,
        trains=trains,
        fate=np.where(trains, "trained", "slow"),
        steps=np.where(trains, 1000 * (1 - table.over_chance), np.nan),
        largest_depth=[float(deepest.get(pair, 0)) for pair in zip(table.task, table.architecture)],
    )


def analyse(table: DataFrame, *outcomes: str) -> DataFrame:
    """Analyse these outcomes, by default whether networks train; each takes a third of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "STATISTICS", {name: STATISTICS[name] for name in outcomes or ("trains",)})
        return DataFrame(list(measure.analyse(table, draws=200)))


def select(rows: DataFrame, **labels: Any) -> Any:
    """Return the single row with these labels, by default of task a, of whether networks train, over depth and parameters."""
    for name, value in ({"task": "a", "outcome": "trains", "over": SIZE} | labels).items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1, rows
    return rows.iloc[0]


def select_residual(rows: DataFrame, kind: str = "alone", **labels: Any) -> Any:
    """Return the row of what the residual predicts alone, or adds."""
    return select(rows, kind=kind, predictor="residual", **labels)
