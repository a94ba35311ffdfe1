"""Decide whether the variance that layers add grows like a power of the layer or exponentially, and whether it follows the weights."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankfall import GREY, Band, DataFrame, band, colours_of
from studies.common import Answer, above, below, between, by_band, within_groups

NETWORK = ["kind", "depth", "seed", "when"]
LEAST = 16  # layers; fewer do not distinguish a power from an exponential


def summarise(table: DataFrame) -> DataFrame:
    return table[[*NETWORK, "layer", "added", "increment", "weights", "loss"]]


def fits(table: DataFrame) -> DataFrame:
    """Return, for each network, the power of the layer, and log10 of the exponential's squared error over that of the power law."""
    rows = []
    for key, network in table[table.depth >= LEAST].groupby(NETWORK):
        late = network[network.layer >= network.depth / 4]
        logs, y = np.log(late.layer.to_numpy(float)), np.log(late.added.to_numpy(float))
        power, error = fit_line(logs, y)
        rate, error_exponential = fit_line(late.layer.to_numpy(float), y)
        rows.append(
            dict(zip(NETWORK, key)) | {"power": power, "rate": rate, "ratio": np.log10(error_exponential / error)}
        )
    return pd.DataFrame(rows)


def fit_line(x: Any, y: Any) -> tuple[float, float]:
    """Return the slope of the least-squares line, and its sum of squared errors."""
    slope, start = np.polyfit(x, y, 1)
    return float(slope), float(((y - slope * x - start) ** 2).sum() + 1e-12)


def follows(table: DataFrame, kind: str) -> Band:
    """Return the correlation of log increment and log weights within a network, each less its line in the layer.

    The interval is Student's t over networks, since the layers of a network are not independent."""
    deep = table[(table.kind == kind) & (table.when == "trained") & (table.depth >= LEAST)]
    pairs = [beside_layer(network) for _, network in deep.groupby(NETWORK)]
    correlations = [float(a @ b / np.sqrt((a @ a) * (b @ b))) for a, b in pairs]
    return band(correlations) if len(correlations) > 1 else Band(np.nan, -1.0, 1.0, len(correlations))


def beside_layer(network: DataFrame) -> tuple[Any, Any]:
    """Return log increment and log weights of one network, less a line in the layer."""
    layer = network.layer.to_numpy(float)
    logs = (np.log(network[name].to_numpy(float)) for name in ("increment", "weights"))
    a, b = (x - np.polyval(np.polyfit(layer, x, 1), layer) for x in logs)
    return a, b


def decide(table: DataFrame, thresholds: dict[str, float]) -> dict[str, Answer]:
    """Return the answer to each statement of the design."""
    rows = fits(table)
    if rows.empty:
        return {}

    def fitted(kind: str, column: str, when: str = "trained") -> Any:
        """Return a column of the fits of one kind, by depth and seed."""
        return rows[(rows.kind == kind) & (rows.when == when)].set_index(["depth", "seed"])[column]

    linear = thresholds["linear_from"], thresholds["linear_to"]
    return {
        "pre_exponential": below(fitted("pre-norm", "ratio"), thresholds["ratio"]),
        "pre_linear": between(fitted("pre-norm", "power"), *linear),
        "peri_linear": between(fitted("peri-norm", "power"), *linear),
        "pre_more_than_birth": above(fitted("pre-norm", "power") - fitted("pre-norm", "power", "birth"), 0.0),
        "follows_weights": by_band(follows(table, "pre-norm"), thresholds["follows"]),
    }


def by_kind(table: DataFrame) -> DataFrame:
    """Return the power and ratio of each kind at birth and after training, and how far increments follow weights, with intervals over
    networks."""
    rows = []
    for (kind, when), networks in fits(table).groupby(["kind", "when"], sort=False):
        power, ratio = band(networks.power), band(networks.ratio)
        rows.append(
            {"kind": kind, "when": when, "power": str(power), "ratio": str(ratio), "networks": len(networks)}
            | {"follows": str(follows(table, kind)) if when == "trained" else ""}
        )
    return pd.DataFrame(rows)


def draw(table: DataFrame, thresholds: dict[str, float]) -> Any:
    """Draw what layers have added, at birth and after training, and the power of each kind."""
    kinds = list(table.kind.drop_duplicates())
    colours = colours_of(sorted(kinds))
    deepest = table[table.depth == table.depth.max()]
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    axes[1].sharey(axes[0])
    for axis, when in zip(axes, ("birth", "trained")):
        for kind in kinds:
            rows = deepest[(deepest.kind == kind) & (deepest.when == when)]
            for _, network in rows.groupby("seed"):
                axis.plot(network.layer, network.added, color=colours[kind], lw=0.6, alpha=0.6)
            mean = rows.groupby("layer").added.mean()
            axis.plot(
                mean.index, mean, "--" if kind == "hyper-connections" else "-", color=colours[kind], lw=2, label=kind
            )
        title = {"birth": "at birth", "trained": "after training"}[when]
        axis.set(xscale="log", yscale="log", xlabel="layer", title=f"{title}, {deepest.depth.max()} layers")
    axes[0].set(ylabel="mean square that layers have added")
    axes[0].legend(fontsize=7)
    fitted = fits(table)
    for y, kind in enumerate(kinds[::-1]):
        for when, away, face in (("birth", 0.12, "none"), ("trained", -0.12, colours[kind])):
            power = band(fitted[(fitted.kind == kind) & (fitted.when == when)].power)
            axes[2].hlines(y + away, power.low, power.high, color=colours[kind])
            axes[2].plot(power.mean, y + away, "o", color=colours[kind], markerfacecolor=face, markersize=6)
    axes[2].axvspan(thresholds["linear_from"], thresholds["linear_to"], color=GREY, alpha=0.2, lw=0)
    axes[2].set(yticks=range(len(kinds)), yticklabels=kinds[::-1], xlabel="power of the layer")
    axes[2].set_title("open: at birth, filled: trained", fontsize=9)
    return figure


def details(table: DataFrame, thresholds: dict[str, float]) -> dict[str, DataFrame]:
    """Return the fits by kind and by depth. For pre-norm networks, also return the correlation of log increment and log weights beside
    flags of the network alone, and the power of the weights in the increment, beside the layer."""
    trained = table[(table.when == "trained") & (table.kind == "pre-norm")]
    logs = trained.assign(a=np.log(trained.increment), b=np.log(trained.weights))
    flags = within_groups(logs, "a", "b", NETWORK)
    depths = fits(table).groupby(["kind", "when", "depth"])[["power", "ratio"]].agg(["mean", "min", "max"])
    depths.columns = [" ".join(names) for names in depths.columns]
    deep = trained[trained.depth >= LEAST].groupby(NETWORK)
    steep = band([float(a @ b / (b @ b)) for a, b in map(beside_layer, (network for _, network in deep))])
    weights = pd.DataFrame(
        [{"what": "correlation beside flags", **flags.fields()}, {"what": "power of weights", **steep.fields()}]
    )
    return {"kinds": by_kind(table), "depths": depths.reset_index(), "weights": weights}
