"""Decide which one variable of context length and width explains query gradients and stable ranks."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankfall import DataFrame
from studies.common import Answer, above, below, between

VARIABLES = {"T": (1, 0), "d": (0, 1), "T/d": (1, -1), "T d": (1, 1), "T/d^2": (1, -2)}
BELOW, ABOVE = (0.43, 1.0), (2.0, 3.0)  # of the transition at sqrt(2)
COLUMNS = ("gradient", "stable_rank", "stable_rank_cured")


def summarise(table: DataFrame) -> DataFrame:
    return table[["tokens", "width", "beta", "replication", *COLUMNS]]


def shares(table: DataFrame, column: str) -> DataFrame:
    """Return, by beta and replication, the share of the variance between points that each variable explains: groups of its equal values."""
    rows = []
    for (beta, replication), points in table.groupby(["beta", "replication"]):
        y = np.log(points[column].to_numpy(float))
        for name, (a, b) in VARIABLES.items():
            group = np.rint(a * np.log2(points.tokens) + b * np.log2(points.width)).astype(int).to_numpy()
            rows.append(
                {"beta": beta, "replication": replication, "variable": name, "share": epsilon_squared(y, group)}
            )
    return pd.DataFrame(rows)


def epsilon_squared(y: Any, group: Any) -> float:
    """Return 1 - (mean square within groups) / (mean square of all)."""
    means = pd.Series(y).groupby(group).transform("mean").to_numpy()
    within, total = ((y - means) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    return float(1 - (within / (len(y) - len(set(group)))) / (total / (len(y) - 1)))


def powers(table: DataFrame) -> DataFrame:
    """Return a and b of gradient ~ T^a d^b for each beta and replication, by least squares over all points."""
    rows = []
    for (beta, replication), points in table.groupby(["beta", "replication"]):
        x = np.column_stack([np.ones(len(points)), np.log(points.tokens), np.log(points.width)])
        coefficients = np.linalg.lstsq(x, np.log(points.gradient.to_numpy(float)), rcond=None)[0]
        rows.append({"beta": beta, "replication": replication, "a": coefficients[1], "b": coefficients[2]})
    return pd.DataFrame(rows)


def power_of_tokens(table: DataFrame, betas: tuple[float, ...], group: Any, least: float) -> Any:
    """Return the power of T in the gradient at equal values of `group`, for T >= least d, by replication."""
    points = table[table.beta.isin(betas) & (table.tokens >= least * table.width)].copy()
    points["group"] = group(points)
    keys = ["beta", "group", "replication"]
    points = points[points.groupby(keys).tokens.transform("size") > 1]
    x, y = np.log(points.tokens), np.log(points.gradient)
    x, y = (logs - logs.groupby([points[key] for key in keys]).transform("mean") for logs in (x, y))
    return (x * y).groupby(points.replication).sum() / (x * x).groupby(points.replication).sum()


def decide(table: DataFrame, thresholds: dict[str, float]) -> dict[str, Answer]:
    """Return the answer to each statement of the design."""
    gradient, rank, least_share = shares(table, "gradient"), shares(table, "stable_rank"), thresholds["one"]

    def share(rows: DataFrame, betas: tuple[float, ...]) -> Answer:
        chosen = rows[rows.beta.isin(betas) & (rows.variable == "T/d")]
        return above(chosen.groupby("replication").share.mean(), least_share)

    level = power_of_tokens(table, BELOW, lambda rows: rows.width, 4)
    vanish = power_of_tokens(table, BELOW, lambda rows: rows.tokens / rows.width, 1)
    least = table[table.beta == BELOW[0]]
    ratio = least.tokens / least.width
    far, near = (least[ratio == value].groupby("replication").stable_rank_cured.mean() for value in (ratio.max(), 1))
    return {
        "gradient_one": share(gradient, BELOW),
        "gradient_one_above": share(gradient, ABOVE),
        "level": between(level, -thresholds["level"], thresholds["level"]),
        "vanish": below(vanish, 0.0),
        "rank_one": share(rank, BELOW + ABOVE),
        "cured": above(far / near, thresholds["cured"]),
    }


def details(table: DataFrame, thresholds: dict[str, float]) -> dict[str, DataFrame]:
    """Return the mean share that each variable explains by beta, and the powers of T and d of the query gradient by beta."""
    explained = pd.concat(shares(table, column).assign(number=column) for column in COLUMNS)
    variables = explained.pivot_table(index=["number", "variable"], columns="beta", values="share").reset_index()
    by_beta = powers(table).groupby("beta")[["a", "b"]].mean().reset_index()
    return {"variables": variables, "powers": by_beta}


def draw(table: DataFrame, thresholds: dict[str, float]) -> Any:
    """Draw gradients and stable ranks by tokens, and stable ranks by the ratio of tokens and width."""
    means = table.groupby(["tokens", "width", "beta"])[list(COLUMNS)].mean().reset_index()
    widths = sorted(means.width.unique())
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(widths)))
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4))
    panels = (
        (BELOW[0], "tokens", "gradient", "tokens T"),
        (BELOW[1], "tokens", "gradient", "tokens T"),
        (ABOVE[1], "tokens", "gradient", "tokens T"),
        (BELOW[0], "tokens", "stable_rank", "tokens T"),
        (BELOW[0], "ratio", "stable_rank", "T / d"),
        (BELOW[0], "ratio", "stable_rank_cured", "T / d"),
    )
    means["ratio"] = means.tokens / means.width
    for axis, (beta, x, y, name) in zip(axes.flat, panels):
        for width, shade in zip(widths, shades):
            points = means[(means.beta == beta) & (means.width == width)]
            axis.plot(points[x], points[y], "o-", color=shade, markersize=3, label=f"d = {width}")
        text = {
            "gradient": "query gradient",
            "stable_rank": "stable rank",
            "stable_rank_cured": "stable rank without 1/T",
        }[y]
        axis.set(xscale="log", yscale="log", xlabel=name)
        axis.set_title(f"{text}, beta {beta:g}", fontsize=10)
        axis.tick_params(which="both", labelsize=8)
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    return figure
