"""Residuals by layer, trained and untrained: how much of its rank each architecture keeps."""

from typing import Any, Literal

import numpy as np

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.rank.residuals.shown import STATES
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import CHANCE, colours
from rankfall.report.labels import join, many
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
        f"{title} by layer on {label(task)}{measured}: {seeds}.{rounding} {describe_finding(by_seed, names, quantity)}{missing}",
        summary(drawn, by, title, log=True),
    )


def describe_finding(by_seed: DataFrame, names: list[str], quantity: str) -> str:
    """Write how many networks of each architecture have lost rank at their last layer with a value, which may differ between networks.

    Networks of one training are counted together. Rank is lost if less than 1% of a residual is left, or if a rank is 1.
    """
    network = ["architecture", "training", "seed"]
    lines = by_seed.dropna(subset="value").sort_values("layer").groupby(network)
    ends = lines.agg(layers=("layer", "last"), start=("value", "first"), end=("value", "last")).reset_index()
    least = RANKS.get(quantity)
    ends = ends.assign(lost=ends.end < (0.01 * ends.start if least is None else least))
    gone = "less than 1% of it is left" if least is None else f"it is below {least}"
    parts = []
    trainings = init_first(ends.training)
    ends = ends.astype({"layers": int})
    groups = [
        (training, *group) for training in trainings for group in ends[ends.training == training].groupby("layers")
    ]
    for training, layers, deep in groups:
        lost = deep.groupby("architecture").lost.agg(["sum", "size"])
        alike: dict[str, list[str]] = {}
        for name in (name for name in names if name in lost.index):
            alike.setdefault(f"{lost['sum'][name]} of {lost['size'][name]} networks", []).append(label(name))
        counts = ", ".join(f"{count} {'each ' * (len(names) > 1)}of {join(names)}" for count, names in alike.items())
        where = f"{label(training)}: " * (len(trainings) > 1)
        parts.append(f"{where}after {many(layers, 'layer')} {gone} in {counts}")
    text = "; ".join(parts)
    return f"{text[:1].upper() * (len(trainings) == 1) or text[:1]}{text[1:]}."
