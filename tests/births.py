"""Synthetic tables of networks at birth and their ends, of which the answer is known."""

from typing import Any

import numpy as np
import pytest
from pandas import DataFrame

from studies.prediction.prediction.measure import deal_folds
from studies.prediction.prediction.rows import BIRTH, PARTS
from studies.prediction.prediction_scores import measure
from studies.prediction.prediction_scores.scores import STATISTICS

FEW = ("residual", "norm_growth", "gradient_queries", "own_share")  # predictors that are known


def networks(architectures: int = 40, seeds: int = 2, tasks: tuple[str, ...] = ("a",), seed: int = 0) -> DataFrame:
    """Every predictor that is known is noise, an architecture's number plus a network's; depth and parts decide nothing."""
    rng = np.random.default_rng(seed)
    rows = [
        {"task": task, "architecture": f"net{number:02d}", "depth": depth, "seed": s}
        for task in tasks
        for number in range(architectures)
        for depth in (2, 8, 32)
        for s in range(seeds)
    ]
    found = DataFrame(rows)
    own = {name: rng.normal() for name in found.architecture.unique()}
    found["over_chance"] = 1 / (1 + np.exp(-(found.architecture.map(own) + rng.normal(size=len(found)))))
    found["fold"] = deal_folds(found.architecture, 10)
    found["parameters"] = 1000.0 + found.architecture.map({name: rng.normal() for name in own})
    found = found.assign(**dict.fromkeys(PARTS, "same"))
    for name in BIRTH:
        found[f"birth_{name}"] = np.nan
    for name in FEW:
        each = {architecture: rng.normal() for architecture in own}
        found[f"birth_{name}"] = found.architecture.map(each) + rng.normal(size=len(found))
    return ended(found)


def ended(found: DataFrame) -> DataFrame:
    """With outcomes that follow from `over_chance`."""
    trains = found.over_chance >= 0.5
    deep = found[trains].groupby(["task", "architecture"]).depth.max()
    return found.assign(
        threshold=0.5,
        trains=trains,
        fate=np.where(trains, "trained", "slow"),
        steps=np.where(trains, 1000 * (1 - found.over_chance), np.nan),
        largest_depth=[float(deep.get(place, 0)) for place in zip(found.task, found.architecture)],
    )


def analysis(found: DataFrame, *outcomes: str) -> DataFrame:
    """Analyse these outcomes, by default whether networks train; each takes a third of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "STATISTICS", {name: STATISTICS[name] for name in outcomes or ("trains",)})
        return DataFrame(list(measure.analyse(found, draws=200)))


def one(rows: DataFrame, **labels: Any) -> Any:
    for name, value in labels.items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1, rows
    return rows.iloc[0]
