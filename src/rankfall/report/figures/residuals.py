"""Residuals by layer, trained and untrained: how much of its rank each architecture keeps."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rankfall.errors import RankfallError
from rankfall.report.colours import colours
from rankfall.report.lines import floored, legend_below, lines, summary
from rankfall.report.selection import among, finished, init_first, one_a_seed, one_of
from rankfall.report.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["residuals"]
LABELS = {"residual": "|res(X)| / |X|", "sigma_ratio": "σ₂/σ₁"}


def residuals(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    quantity: Literal["residual", "absolute_residual", "sigma_ratio", "stable_rank", "numerical_rank"] = "residual",
    norm: Literal["composite", "frobenius", "l1", "linf", "spectral"] = "composite",
    centre: Literal["mean", "best"] = "mean",
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """States after each block, of the deepest networks; one panel a training. All architectures of the task that most cells have, unless
    named. `norm` and `centre` are for `residual` alone. `where`: only these cells, by any column."""
    table, task = one_of(finished(read("residuals"), "residuals", where), "residuals", "task", task)
    table = among(table, "residuals", "architecture", architectures)
    names = [str(name) for name in architectures or sorted(table.architecture.unique())]
    table = table[(table.place == "state") & (table.quantity == quantity)]
    if quantity == "residual":
        table = table[(table.matrix_norm == norm) & (table.centre == centre)]
    if table.empty:
        raise RankfallError(
            f"figure residuals: the table has no states' {quantity} by norm {norm!r} about centre {centre!r}"
        )
    table = table[table.depth == table.groupby(["architecture", "training"]).depth.transform("max")]
    one_a_seed(table, "residuals", ["architecture", "training"])
    by = ["training", "architecture", "layer"]
    each = table.groupby([*by, "seed"])[["value", "floor_share"]].mean().reset_index()
    label = LABELS.get(quantity, quantity)
    drawn = each.assign(value=floored(each.value)).rename(columns={"value": label})
    grid = lines(
        drawn, "layer", label, "architecture", colours(names), col="training", col_order=init_first(each.training), height=2.4, log="y"
    )  # fmt: skip
    mean = drawn.assign(log=np.log10(drawn[label])).groupby(by)[["log", "floor_share"]].mean().reset_index()
    for training, panel in grid.axes_dict.items():
        noise = mean[(mean.training == training) & (mean.floor_share > 0)]
        panel.plot(
            noise.layer, 10**noise.log, "o", markerfacecolor="white", markeredgecolor="#555555", linestyle="none"
        )
    legend_below(grid)
    said = (
        f" ({norm} norm about the {'token mean' if centre == 'mean' else 'best centre'})"
        if quantity == "residual"
        else ""
    )
    return Picture(
        grid.figure,
        f"{label} by layer on {task}{said}: lines are geometric means over {each.seed.nunique()} seeds, bands one standard deviation "
        f"of the logarithm over seeds; open marks are at the floor of float64, where rows that are equal to the last "
        "digit are drawn at the smallest value there is. " + finding(each, names),
        summary(drawn, by, label, log=True),
    )


def finding(each: "DataFrame", names: list[str]) -> str:
    """How many networks of each architecture have lost rank at the last layer."""
    ends = each.pivot_table(index=["architecture", "training", "seed"], columns="layer", values="value")
    lost = (ends[ends.columns.max()] < 0.01 * ends[0]).groupby("architecture").agg(["sum", "size"])
    said = [f"{lost['sum'][name]} of {lost['size'][name]} networks of {name}" for name in names if name in lost.index]
    return f"After {each.layer.max()} layers less than 1% of it is left in {', '.join(said)}."
