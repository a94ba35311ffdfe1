"""Residuals by layer, trained and untrained: how much of its rank each architecture keeps."""

from typing import Any, Literal

import numpy as np

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.rank.residuals.shown import STATES
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import CHANCE, colours
from rankfall.report.labels import many
from rankfall.report.lines import FLOOR, legend_below, lines, raise_zeros, summary
from rankfall.report.looks import label
from rankfall.report.selection import choose, deepest, init_first, select
from rankfall.report.style import Picture

LABELS = {
    "residual": "|res(X)| / |X|",
    "absolute_residual": "|res(X)|",
    "sigma_ratio": "σ₂/σ₁",
    "stable_rank": "stable rank",
    "numerical_rank": "numerical rank",
}
RELATIVE = ("residual", "sigma_ratio")  # shares, with a floor of rounding
OF_A_NORM = ("residual", "absolute_residual")
RANKS = {"stable_rank": 1.01, "numerical_rank": 1.5}  # upper limit of values that count as 1, the minimum


def residuals(
    read: Read,
    *,
    task: str | None = None,
    quantity: Literal["residual", "absolute_residual", "sigma_ratio", "stable_rank", "numerical_rank"] = "residual",
    norm: Literal["composite", "frobenius", "l1", "linf", "spectral"] = "composite",
    centre: Literal["mean", "best"] = "mean",
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """Draw states after each block of the deepest networks, one panel per training.

    The default is all architectures of the task with the most cells. `norm` and `centre` are for both residuals. `where`: only these
    cells, by any column.
    """
    table, whole, (task,) = choose(read("residuals"), "residuals", where, task=task, architecture=architectures)
    names = [str(name) for name in architectures or sorted(table.architecture.unique())]
    table = select(table, STATES | {"quantity": quantity})
    if quantity in OF_A_NORM:
        table = select(table, {"matrix_norm": norm, "centre": centre})
    if table.empty:
        raise RankfallError(
            f"figure residuals: the table has no states' {quantity} by norm {norm!r} about centre {centre!r}"
        )
    table = deepest(table, "residuals", ["architecture", "training"])
    by = ["training", "architecture", "layer"]
    missing = describe_missing(table, ["architecture", "training"], "value", whole)
    seeds = describe_lines(
        table, ["architecture", "training"], "value", "one standard deviation of the logarithm", "geometric means"
    )
    table = table.assign(value=table.value.astype(float))
    by_seed = table[table.value.notna()].groupby([*by, "seed"])[["value", "floor_share"]].mean().reset_index()
    if by_seed.empty:
        raise RankfallError(f"figure residuals: no network of {task} has a {quantity}.{missing}")
    title = LABELS.get(quantity, quantity)
    drawn = by_seed.assign(value=raise_zeros(by_seed.value)).rename(columns={"value": title})
    grid = lines(
        drawn, "layer", title, "architecture", colours(names), col="training", col_order=init_first(by_seed.training), height=2.4, log="y"
    )  # fmt: skip
    floor = quantity in RELATIVE and drawn[title].min() < 100 * FLOOR
    if floor:
        grid.refline(y=FLOOR, color=CHANCE, linestyle=":", label="rounding of float64")
    mean = drawn.assign(log=np.log10(drawn[title])).groupby(by)[["log", "floor_share"]].mean().reset_index()
    for training, panel in grid.axes_dict.items():
        noise = mean[(mean.training == training) & (mean.floor_share > 0)]
        look: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": "#555555", "linestyle": "none"}
        panel.plot(noise.layer, 10**noise.log, "o", **look)
    legend_below(grid)
    about = f", {norm} norm about the {'token mean' if centre == 'mean' else 'best centre'}"
    measured = about * (quantity in OF_A_NORM)
    rounding = f" Open marks are rounding noise of float64 (dotted: {FLOOR:.0e})." if floor else ""
    return Picture(
        grid.figure,
        f"{title} by layer on {label(task)}{measured}: {seeds}.{rounding} {describe_finding(by_seed, quantity)}{missing}",
        summary(drawn, by, title, log=True),
    )


def describe_finding(by_seed: DataFrame, quantity: str) -> str:
    """Write how many networks of each training and architecture have lost rank at their last layer with a value, which may differ between
    networks. Rank is lost if less than 1% of a residual is left, or if a rank is 1.
    """
    lines = by_seed.dropna(subset="value").sort_values("layer").groupby(["training", "architecture", "seed"])
    ends = lines.agg(layers=("layer", "last"), start=("value", "first"), end=("value", "last")).reset_index()
    least = RANKS.get(quantity)
    ends = ends.assign(lost=ends.end < (0.01 * ends.start if least is None else least))
    phrases = []
    for (training, layers), part in ends.groupby(["training", "layers"]):
        counts = part.groupby("architecture").lost.agg(["sum", "size"]).itertuples(name=None)
        listed = ", ".join(f"{label(name)} {lost} of {networks}" for name, lost, networks in counts)
        phrases.append(f"{label(training)}, {many(int(layers), 'layer')}: {listed}")
    gone = "with less than 1% of it left" if least is None else f"in which it is below {least}"
    return f"Networks {gone} after the last layer: {'; '.join(phrases)}."
