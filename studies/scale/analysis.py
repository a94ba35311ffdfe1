"""Compare curves of the kept residual over the scale of the weights by the place of the norm: does a place predict a type of model?"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankfall import Band, DataFrame
from studies.common import Answer, above, below, between, by_band

POINT = ["width", "depth", "entering", "gain"]
POST, PRE = "after the addition", "before the branch"


def summarise(table: DataFrame) -> DataFrame:
    """Return means over seeds."""
    return table.groupby(["place", "type", *POINT], sort=False)[["kept", "growth"]].mean().reset_index()


def place_of(table: DataFrame) -> Any:
    """Return the place of the norm, joined to three: post (after the addition), behind (the branch, alone or not), pre (all others)."""
    behind = table.place.str.contains("behind")
    return np.where(table.place == POST, "post", np.where(behind, "behind", "pre"))


def change(table: DataFrame, place: str, low: float, high: float) -> Any:
    """Return the kept residual at the scale `high` less that at `low`, by type."""
    kept = table[place_of(table) == place].pivot_table(
        index=["type", "width", "depth", "entering"], columns="gain", values="kept"
    )
    kept = kept.reindex(columns=[low, high])  # a table without these places has no rows of them
    return (kept[high] - kept[low]).groupby("type").mean()


def predict(table: DataFrame) -> DataFrame:
    """Add two guesses of `kept`: the mean of the place's other types at this point, and the type's mean over scales (null model)."""
    table = table.assign(place=place_of(table))
    groups = table.groupby(["place", *POINT]).kept
    count = groups.transform("size")
    curve = (groups.transform("sum") - table.kept) / (count - 1).where(count > 1)
    null = table.groupby(["type", "width", "depth", "entering"]).kept.transform("mean")
    return table.assign(curve=curve, null=null).dropna(subset="curve")


def explained(table: DataFrame, by: str) -> float:
    return float(1 - ((table.kept - table[by]) ** 2).sum() / ((table.kept - table.kept.mean()) ** 2).sum())


def curve(table: DataFrame, place: str) -> Band:
    """Return R2 of the curve of the other types, with the interval from leaving out a type at a time (jackknife)."""
    rows = predict(table)
    rows = rows[rows.place == place]
    if rows.empty:
        return Band(np.nan, -np.inf, np.inf, 0)
    types = sorted(rows.type.unique())
    whole = explained(rows, "curve")
    kept = table[place_of(table) == place]
    without = np.array([explained(predict(kept[kept.type != kind]), "curve") for kind in types if len(types) > 2])
    count = len(without)
    error = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())) if count else np.inf
    return Band(whole, whole - 1.96 * error, whole + 1.96 * error, len(types))


def decide(table: DataFrame, thresholds: dict[str, float]) -> dict[str, Answer]:
    falls, small = thresholds["falls"], thresholds["saturates"]
    return {
        "post_falls": below(change(table, "post", 0.15, 1.5), falls),
        "pre_saturates": between(change(table, "pre", 1.5, 5.0), -small, small),
        "behind_rises": above(change(table, "behind", 0.15, 5.0), thresholds["rises"]),
        "one_curve_post": by_band(curve(table, "post"), thresholds["curve"]),
        "one_curve_pre": by_band(curve(table, "pre"), thresholds["curve"]),
        "one_curve_behind": by_band(curve(table, "behind"), thresholds["curve"]),
    }


def details(table: DataFrame, thresholds: dict[str, float]) -> dict[str, DataFrame]:
    """Return R2 of the curve and of the null model by place, and what each type keeps by size of the entering state, depth and scale."""
    curves = pd.DataFrame(
        {
            "place": place,
            "types": rows.type.nunique(),
            "curve": explained(rows, "curve"),
            "null": explained(rows, "null"),
        }
        for place, rows in predict(table).groupby("place")
    )
    keys = ["place", "type", "entering", "depth"]
    kept = table.assign(place=place_of(table)).pivot_table(index=keys, columns="gain", values="kept").reset_index()
    return {"curves": curves, "types": kept}


def draw(table: DataFrame, thresholds: dict[str, float]) -> Any:
    table = table.assign(where=place_of(table))
    titles = {"post": "norm after the addition", "pre": "norm before the branch", "behind": "norm behind the branch"}
    depths = sorted(table.depth.unique())
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(depths)))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True)
    for axis, (where, title) in zip(axes, titles.items()):
        for depth, shade in zip(depths, shades):
            for entering, line in ((1.0, "-"), (0.02, ":")):
                rows = table[(table["where"] == where) & (table.depth == depth) & (table.entering == entering)]
                for _, model in rows.groupby(["type", "width"]):
                    axis.plot(model.gain, model.kept, line, color=shade, lw=0.5, alpha=0.5)
                mean = rows.groupby("gain").kept.mean()
                label = f"{depth} layers" if line == "-" else None
                axis.plot(mean.index, mean, line, color=shade, lw=2, label=label)
        axis.set(xscale="log", title=title, xlabel="std x sqrt(fan in) of the layers' matrices")
        axis.set_xticks(scales := sorted(table.gain.unique())[::2], [f"{scale:g}" for scale in scales], minor=False)
        axis.minorticks_off()
    axes[0].set(ylabel="residual kept by all layers", ylim=(0, 1.3))
    axes[0].legend(fontsize=8, title="solid: states enter at RMS 1\ndotted: at 0.02", title_fontsize=7)
    figure.tight_layout()
    return figure
