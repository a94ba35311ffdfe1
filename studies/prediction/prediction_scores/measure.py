"""The measure `prediction_scores`: how well measurements at birth predict outcomes, beyond the configuration (docs/prediction.md).

Models are linear and logistic in ranks and squared ranks of numbers and in the parts of an architecture, with a small penalty. For each
task each model is learned from the networks of nine tenths of the architectures and judged on those of the last tenth, whole architectures
at a time, and so for each tenth (`folds`). Intervals come from resampled architectures, with all networks of one together, and gains over a
null model come from the same draws. Null models know the depth, the number of parameters, both, or the parts of the architecture and the
depth. A verdict on a predictor holds for all predictors at once: its lower end is at 0.05 divided by their number.
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
from studies.prediction.prediction_scores.held_out import judge, why_no_value
from studies.prediction.prediction_scores.pairs import Sums
from studies.prediction.prediction_scores.rows import ALL, DESIGN, NULLS, SIZE, STATISTICS
from studies.prediction.prediction_scores.verdict import LEVEL, UNDECIDED, enough, of_alone, of_gain

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
    found = all_networks(context.table, selection, threshold, thresholds, folds)
    return list(analyse(found, draws))


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
        found = {
            model.name: {task: judge(part, list(model.columns), outcome, architectures) for task, part in tasks.items()}
            for model in models(predictors)
        }
        for statistic in STATISTICS[outcome]:
            for task in (*tasks, ALL):
                of = {task: tasks[task]} if task != ALL else tasks
                about = {"task": task, "outcome": outcome, "statistic": statistic}
                yield from score_rows(
                    about, {name: [one[t][statistic] for t in of] for name, one in found.items()}, of, predictors, drawn
                )


def models(predictors: list[str]) -> Iterator[Model]:
    every = tuple(column(name) for name in predictors)
    for name, columns in KNOWS.items():
        yield Model("null", name, columns)
    for name in predictors:
        yield Model("alone", name, (column(name),), name)
    yield Model("together", TOGETHER, every)
    for null in NULLS:
        for name in predictors:
            yield Model("added", f"{null} and {name}", (*KNOWS[null], column(name)), name, (null,))
        yield Model("together", f"{null} and {TOGETHER}", (*KNOWS[null], *every))


def score_rows(
    about: dict[str, Any],
    sums: dict[str, list[Sums]],
    tasks: dict[str, DataFrame],
    predictors: list[str],
    drawn: np.ndarray,
) -> Iterator[dict[str, Any]]:
    """Yield each model's rows of a statistic, for one task or the mean over several: one row per null model over which its gain is
    measured."""
    whole = {
        name: np.array([one.value(drawn) for one in listed]) for name, listed in sums.items()
    }  # each (tasks, draws + 1)
    kept = np.isfinite(whole[SIZE][:, 0])  # whether a task has pairs does not depend on the model
    asked = pd.concat([part for part, has in zip(tasks.values(), kept) if has or not kept.any()])
    reason = "; ".join(dict.fromkeys(why_no_value(part, about["outcome"]) for part in tasks.values()))
    values = {name: (made[kept] if kept.any() else made).mean(0) for name, made in whole.items()}
    decided = all(enough(*one.deciding()) for one, has in zip(sums[SIZE], kept) if has)
    each = max(1, len(predictors))
    for model in models(predictors):
        value = values[model.name]
        low, high, low_of_all = ends(value, each)
        known = asked[column(model.predictor)].notna().mean() if model.predictor else None
        row = about | {
            "kind": model.kind,
            "model": model.name,
            "predictor": model.predictor,
            "value": number(value[0]),
            "low": number(low),
            "high": number(high),
            "verdict": "",
            "tasks": int(kept.sum()),
            "networks": len(asked),
            "architectures": asked.architecture.nunique(),
            "pairs": sum(
                int(one.below.sum()) if one.below.ndim == 2 else len(part)
                for one, part, has in zip(sums[model.name], tasks.values(), kept)
                if has
            ),
            "known": None if known is None else float(known),
            "value_reason": "" if np.isfinite(value[0]) else reason,
        }
        if model.kind == "alone":
            row["verdict"] = of_alone(about["statistic"], low_of_all, high) if decided else UNDECIDED
        for null in model.over:
            gain = value - values[null]
            gain_low, gain_high, gain_low_of_all = ends(gain, each)
            if model.kind == "added":
                row["verdict"] = of_gain(about["statistic"], gain_low_of_all, gain_high) if decided else UNDECIDED
            yield row | {
                "over": null,
                "gain": number(gain[0]),
                "gain_low": number(gain_low),
                "gain_high": number(gain_high),
            }


def ends(values: np.ndarray, each: int) -> tuple[float, float, float]:
    """Return the ends of the 95% interval over draws, and the lower end of an interval that holds for `each` predictors at once."""
    made = values[1:][np.isfinite(values[1:])]
    if not np.isfinite(values[0]) or len(made) < 100:
        return float("nan"), float("nan"), float("nan")
    low, high, low_of_all = np.quantile(made, [LEVEL / 2, 1 - LEVEL / 2, LEVEL / 2 / each])
    return float(low), float(high), float(low_of_all)


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
