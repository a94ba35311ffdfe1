"""Which rows are of one outcome, and how predictors stand in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = "all"  # tasks, in the mean
NULL = "depth and parameters"
TITLES = {
    "trains": "whether a network trains",
    "over_chance": "its accuracy over chance",
    "steps": "its steps to the threshold",
    "largest_depth": "the largest depth that trains",
}
MEANS = {"auc": "AUC", "tau": "rank correlation", "r2": "R²"}


def of(table: DataFrame, outcome: str, statistic: str, task: str = ALL) -> DataFrame:
    return table[(table.outcome == outcome) & (table.statistic == statistic) & (table.task == task)]


def null(rows: DataFrame) -> DataFrame:
    """The one row of depth and parameters."""
    return rows[rows.model == NULL]


def by_gain(rows: DataFrame) -> DataFrame:
    """The rows of predictors beside depth and parameters, the largest gain first."""
    return rows[rows.kind == "added"].sort_values(["gain", "predictor"], ascending=[False, True])
