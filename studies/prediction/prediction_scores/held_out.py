"""Score networks by models that have seen no network of their architecture."""

import numpy as np
from numpy.typing import NDArray

from rankfall import DataFrame
from studies.prediction.prediction.rows import PARTS
from studies.prediction.prediction_scores.features import encode_parts, features
from studies.prediction.prediction_scores.fits import linear, logistic, scores
from studies.prediction.prediction_scores.pairs import Sums, auc, explain_variance, somers_d
from studies.prediction.prediction_scores.scores import AUC, DEPTH, HOW_WELL, SHARE, SOMERS_D, STATISTICS, TRAINS

Array = NDArray[np.float64]
DIGITS = 6  # of scores, which are about 1: further digits come from rounding and the small penalty of the intercept


def outcome_values(networks: DataFrame, outcome: str) -> tuple[DataFrame, Array, Array]:
    """Return the networks of one task, the values that a model learns, and the values that judge it. Both rise with better outcomes.

    For `steps`, all networks count, and those that never reach the threshold share the last place. For `largest_depth`, each architecture
    has one value, the mean of its networks at the task's largest depth. A diverged network counts as chance.
    """
    if outcome == DEPTH:
        networks = networks[networks.depth == networks.depth.max()]
        by_architecture = networks.groupby("architecture")
        networks = by_architecture.mean(numeric_only=True).join(by_architecture[list(PARTS)].first()).reset_index()
        value = networks.largest_depth.astype(float).to_numpy()
        return networks, np.log2(1 + value), value
    if outcome == TRAINS:
        value = networks.trains.astype(float).to_numpy()
        return networks, value, value
    if outcome == HOW_WELL:
        value = networks.over_chance.astype(float).fillna(0.0).to_numpy()
        return networks, value, value
    steps = networks.steps.astype(float).to_numpy()
    value = np.where(np.isfinite(steps), -steps, -np.inf)
    _, rank = np.unique(value, return_inverse=True)
    return networks, rank / max(1, rank.max()), value


def why_no_value(networks: DataFrame, outcome: str) -> str:
    """Return why no model of one task has a statistic."""
    counted, _, value = outcome_values(networks, outcome)
    if len(np.unique(value)) < 2:
        return "all networks end alike: there is no pair to put in order"
    if counted.fold.nunique() < 2:
        return "all networks are of one fold: there is none to learn from"
    return (
        "networks of one fold end alike, or are one alone: there is no pair to put in order; fewer folds may have some"
    )


def evaluate(networks: DataFrame, columns: list[str], outcome: str, architectures: list[str]) -> dict[str, Sums]:
    """Return each statistic of a model of these columns, for networks of one task.

    A model that learns from networks that all end alike ranks none before another. Networks that a model cannot distinguish tie, whatever
    rounding does to their scores."""
    counted, learned, judged_by = outcome_values(networks, outcome)
    numbers = counted[[name for name in columns if name not in PARTS]].astype(float).to_numpy()
    parts = counted[[name for name in columns if name in PARTS]].fillna("").to_numpy(str)
    depth, fold = counted.depth.to_numpy(float), counted.fold.astype(int).to_numpy()
    score, usual = np.full(len(counted), np.nan), np.full(len(counted), np.nan)
    for part in np.unique(fold):
        out = fold == part
        if out.all():
            continue
        seen = learned[~out]
        usual[out] = np.clip(seen.mean(), seen.min(), seen.max())  # for equal numbers exactly their mean
        if seen.min() == seen.max():
            score[out] = usual[out]
            continue
        train, test = features(numbers[~out], numbers[out])
        if parts.size:
            has, test_has = encode_parts(parts[~out], parts[out], depth[~out], depth[out])
            train, test = np.hstack([train, has]), np.hstack([test, test_has])
        fit = logistic if outcome == TRAINS else linear
        score[out] = np.round(scores(test, fit(train, seen)), DIGITS)
    code = {name: place for place, name in enumerate(architectures)}
    about = np.array([code[name] for name in counted.architecture], dtype=np.int64), fold
    statistics = {
        AUC: lambda: auc(score, judged_by, *about, len(architectures)),
        SOMERS_D: lambda: somers_d(score, judged_by, *about, len(architectures)),
        SHARE: lambda: explain_variance(score, learned, usual, about[0], len(architectures)),
    }
    return {name: statistics[name]() for name in STATISTICS[outcome]}
