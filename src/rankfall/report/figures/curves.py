"""Curves of training: a metric by epoch, one line an architecture, with its band over seeds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.panels import panels_of
from rankfall.report.selection import finished, left_out, one_a_seed, one_of
from rankfall.report.style import CHANCE, Picture, band, canvas, palette

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
    from matplotlib.ticker import MaxNLocator

    whole = finished(read("training"), "curves", where)
    table, task = one_of(whole, "curves", "task", task)
    table, training = one_of(table, "curves", "training", training)
    shown = panels_of(table, "curves", panels)
    table = table[table.architecture.isin([name for names in shown.values() for name in names])]
    there = sorted({f"{s} {m}" for s, m in zip(table.split, table.metric)})
    table = table[(table.split == split) & (table.metric == metric)]
    if table.empty:
        raise RankfallError(f"figure curves: no finished cell has {split} {metric}; there is: {', '.join(there)}")
    one_a_seed(table, "curves", ["architecture"])
    cells = read("cells")
    chance = cells[cells.key.isin(table.key)].chance.mean() if metric == "accuracy" else float("nan")
    figure, axes = canvas(1, len(shown), 3.6 * len(shown) + 1.4, 3.6, sharey=True)
    findings = []
    for axis, (title, names) in zip(axes[0], shown.items()):
        for colour, name in zip(palette(len(names)), names):
            course = table[table.architecture == name].groupby("epoch").value.agg(["mean", "std"]).fillna(0.0)
            course = course.reset_index()
            band(axis, course.epoch, course["mean"], course["std"], colour, name)
            end = course.iloc[-1]
            findings.append((end["mean"], f"{name} {end['mean']:.3f} ± {end['std']:.3f}"))
        if chance == chance:
            axis.axhline(chance, color=CHANCE, linestyle="--", linewidth=1.2, label="chance")
        axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        axis.set(xlabel="epoch", title=title)
        axis.legend(fontsize=7.5)
    axes[0][0].set_ylabel(f"{split} {metric}")
    ends = ", ".join(text for _, text in sorted(findings, reverse=metric == "accuracy"))
    text = (
        f"{metric.capitalize()} on {task} ({split}) by epoch, training {training}: means over "
        f"{table.groupby('architecture').seed.nunique().min()} seeds, bands one standard deviation over seeds. At the end: {ends}. "
    )
    if chance == chance:
        text += f"Chance, the best guess that never sees an input, is {chance:.3f}. "
    return Picture(figure, text + left_out(whole, table))
