"""Score how well measurements at birth predict outcomes, beyond the configuration (docs/prediction.md).

Models are linear or logistic in ranks and squared ranks of numbers and in the parts of an architecture, with a small penalty. For each
task, a model learns from the networks of nine tenths of the architectures and is judged on those of the last tenth, for each tenth in turn
(`folds`). Intervals come from resampled architectures: all networks of an architecture stay together. Gains over a null model use the same
draws. Null models know the depth, the number of parameters, both, or the parts of the architecture and the depth. A verdict on a predictor
holds for all predictors at once: its lower end is that of an interval at 0.05 divided by their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankfall import Context, DataFrame, random_stream
from studies.prediction.prediction.measure import TABLES as READ
from studies.prediction.prediction.measure import networks as all_networks
from studies.prediction.prediction.rows import BIRTH, PARTS, column
from studies.prediction.prediction_scores.held_out import evaluate, why_no_value
from studies.prediction.prediction_scores.pairs import Sums
from studies.prediction.prediction_scores.scores import (
    ALL,
    DESIGN,
    LEVEL,
    NULLS,
    SIZE,
    STATISTICS,
    UNDECIDED,
    enough,
    judge_alone,
    judge_gain,
)

TABLE = "prediction_scores"
NEEDS = "tables"
TABLES = [*READ]
FINDS = ["headline"]
LIMITS = {"selection": (0, None), "threshold": (0, 1), "folds": (2, None), "draws": (100, None)}
KNOWS = {
    "depth": ("depth",),
    "parameters": ("parameters",),
    SIZE: ("depth", "parameters"),
    DESIGN: ("depth", *PARTS),
}  # null models
TOGETHER = "all predictors"


@dataclass(frozen=True)
class Model:
    """A model by the columns that it knows."""

    kind: str
    name: str
    columns: tuple[str, ...]
    predictor: str | None = None
    over: tuple[str, ...] = NULLS  # the null models over which its gains are measured


def prediction_scores(
    context: Context,
    *,
    selection: list[int] = [3],
    threshold: float = 0.5,
    thresholds: dict[str, Any] = {},
    folds: int = 10,
    draws: int = 4000,
) -> list[dict[str, Any]]:
    """Return the scores of all models. Options are those of `prediction`, and `draws` is the number of resamples of architectures."""
    networks = all_networks(context.table, selection, threshold, thresholds, folds)
    return list(analyse(networks, draws))


def analyse(networks: DataFrame, draws: int) -> Iterator[dict[str, Any]]:
    """Yield all rows, from the table `prediction`."""
    if not len(networks):
        return
    predictors = [name for name in BIRTH if networks[column(name)].notna().any()]
    architectures = sorted(networks.architecture.unique())
    drawn = random_stream(0, "prediction_scores", "draws").multinomial(
        len(architectures), np.full(len(architectures), 1 / len(architectures)), size=draws
    )
    drawn = np.vstack([np.ones(len(architectures)), drawn])  # the first draw is the original architectures
    tasks = dict(list(networks.groupby("task")))
    for outcome in STATISTICS:
        judged = {
            model.name: {
                task: evaluate(part, list(model.columns), outcome, architectures) for task, part in tasks.items()
            }
            for model in models(predictors)
        }
        for statistic in STATISTICS[outcome]:
            for task in (*tasks, ALL):
                chosen = {task: tasks[task]} if task != ALL else tasks
                about = {"task": task, "outcome": outcome, "statistic": statistic}
                yield from score_rows(
                    about,
                    {name: [sums[t][statistic] for t in chosen] for name, sums in judged.items()},
                    chosen,
                    predictors,
                    drawn,
                )


def models(predictors: list[str]) -> Iterator[Model]:
    """Yield the null models, and those of one and of all predictors, alone and beside a null model."""
    all_columns = tuple(column(name) for name in predictors)
    for name, columns in KNOWS.items():
        yield Model("null", name, columns)
    for name in predictors:
        yield Model("alone", name, (column(name),), name)
    yield Model("together", TOGETHER, all_columns)
    for null in NULLS:
        for name in predictors:
            yield Model("added", f"{null} and {name}", (*KNOWS[null], column(name)), name, (null,))
        yield Model("together", f"{null} and {TOGETHER}", (*KNOWS[null], *all_columns))


def score_rows(
    about: dict[str, Any],
    sums: dict[str, list[Sums]],
    tasks: dict[str, DataFrame],
    predictors: list[str],
    drawn: np.ndarray,
) -> Iterator[dict[str, Any]]:
    """Yield each model's rows of a statistic, for one task or the mean over several: one row per null model over which its gain is
    measured."""
    # Each (tasks, draws + 1).
    ratios = {name: np.array([part.value(drawn) for part in by_task]) for name, by_task in sums.items()}
    kept = np.isfinite(ratios[SIZE][:, 0])  # whether a task has pairs does not depend on the model
    counted = pd.concat([part for part, has in zip(tasks.values(), kept) if has or not kept.any()])
    reason = "; ".join(dict.fromkeys(why_no_value(part, about["outcome"]) for part in tasks.values()))
    values = {name: (by_task[kept] if kept.any() else by_task).mean(0) for name, by_task in ratios.items()}
    decided = all(enough(*part.deciding()) for part, has in zip(sums[SIZE], kept) if has)
    count = max(1, len(predictors))
    for model in models(predictors):
        value = values[model.name]
        low, high, low_of_all = interval_ends(value, count)
        known = counted[column(model.predictor)].notna().mean() if model.predictor else None
        row = about | {
            "kind": model.kind,
            "model": model.name,
            "predictor": model.predictor,
            "value": finite_or_none(value[0]),
            "low": finite_or_none(low),
            "high": finite_or_none(high),
            "verdict": "",
            "tasks": int(kept.sum()),
            "networks": len(counted),
            "architectures": counted.architecture.nunique(),
            "pairs": sum(
                int(ratio.below.sum()) if ratio.below.ndim == 2 else len(part)
                for ratio, part, has in zip(sums[model.name], tasks.values(), kept)
                if has
            ),
            "known": None if known is None else float(known),
            "value_reason": "" if np.isfinite(value[0]) else reason,
        }
        if model.kind == "alone":
            row["verdict"] = judge_alone(about["statistic"], low_of_all, high) if decided else UNDECIDED
        for null in model.over:
            gain = value - values[null]
            gain_low, gain_high, gain_low_of_all = interval_ends(gain, count)
            if model.kind == "added":
                row["verdict"] = judge_gain(about["statistic"], gain_low_of_all, gain_high) if decided else UNDECIDED
            yield row | {
                "over": null,
                "gain": finite_or_none(gain[0]),
                "gain_low": finite_or_none(gain_low),
                "gain_high": finite_or_none(gain_high),
            }


def interval_ends(values: np.ndarray, count: int) -> tuple[float, float, float]:
    """Return the ends of the 95% interval over draws, and the lower end of an interval that holds for `count` predictors at once."""
    draws = values[1:][np.isfinite(values[1:])]
    if not np.isfinite(values[0]) or len(draws) < 100:
        return float("nan"), float("nan"), float("nan")
    low, high, low_of_all = np.quantile(draws, [LEVEL / 2, 1 - LEVEL / 2, LEVEL / 2 / count])
    return float(low), float(high), float(low_of_all)


def finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
