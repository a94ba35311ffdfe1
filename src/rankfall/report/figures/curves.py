"""Curves of training: a metric by epoch, one line an architecture, with its band over seeds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.colours import CHANCE
from rankfall.report.lines import legend_below, summary
from rankfall.report.looks import label
from rankfall.report.panels import drawn_in, panels_of
from rankfall.report.selection import finished, one_a_seed, one_of
from rankfall.report.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["training", "cells"]


def curves(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    training: str | None = None,
    split: str = "test",
    metric: str = "accuracy",
    panels: dict[str, Any] = {},
    where: dict[str, Any] = {},
) -> Picture:
    """`panels`: {title: [architectures]}; without it one panel has all architectures of the task and training that most cells have.
    `where`: only these cells, by any column."""
    table, task = one_of(finished(read("training"), "curves", where), "curves", "task", task)
    table, training = one_of(table, "curves", "training", training)
    shown = panels_of(table, "curves", panels)
    there = sorted({f"{s} {m}" for s, m in zip(table.split, table.metric)})
    table = table[table.architecture.isin([name for names in shown.values() for name in names])]
    table = table[(table.split == split) & (table.metric == metric)]
    if table.empty:
        raise RankfallError(f"figure curves: no finished cell has {split} {metric}; there is: {', '.join(there)}")
    one_a_seed(table, "curves", ["architecture"])
    cells = read("cells")
    chance = cells[cells.key.isin(table.key)].chance.mean() if metric == "accuracy" else float("nan")
    grid = drawn_in(shown, table, "epoch", "value")
    if chance == chance:
        grid.refline(y=chance, color=CHANCE, linestyle="--", label="chance")
    grid.set(
        ylabel=f"{split} {metric}",
        xticks=sorted(table.epoch.unique()) if table.epoch.nunique() < 8 else grid.axes.flat[0].get_xticks()[1:-1],
    )
    legend_below(grid)
    ends = table[table.epoch == table.groupby("architecture").epoch.transform("max")]
    mean = ends.groupby("architecture").value.mean().sort_values(ascending=metric != "accuracy")
    text = (
        f"{split.capitalize()} {metric} on {label(task)} by epoch (training {label(training)}): means over "
        f"{table.groupby('architecture').seed.nunique().min()} seeds, bands one standard deviation over seeds. "
        f"At the end {label(mean.index[0])} is first with {mean.iloc[0]:.3f} and {label(mean.index[-1])} last with {mean.iloc[-1]:.3f}"
        + (f"; chance, the best guess without the input, is {chance:.3f}." if chance == chance else ".")
    )
    return Picture(
        grid.figure, text, summary(table, ["architecture", "epoch"], "value").assign(quantity=f"{split} {metric}")
    )
