"""Training curves: a metric by epoch, one line per architecture, with its band over seeds."""

from typing import Any

from rankfall.annotations import Read
from rankfall.errors import RankfallError
from rankfall.report.captions import describe_ends, describe_lines, describe_missing
from rankfall.report.colours import CHANCE
from rankfall.report.lines import POSITIVE, SHARE, draw_panels, legend_below, panels_of, summary
from rankfall.report.looks import label
from rankfall.report.ranking import say_span
from rankfall.report.selection import chances, deepest, one_of, select_asked, select_finished
from rankfall.report.style import Picture

TABLES = ["training", "cells"]


def figure(
    read: Read,
    *,
    task: str | None = None,
    training: str | None = None,
    split: str = "test",
    metric: str = "accuracy",
    panels: dict[str, list[str]] = {},
    where: dict[str, Any] = {},
) -> Picture:
    """Draw a metric of the deepest networks by epoch.

    `panels`: {title: [architectures]}; by default, one panel has all architectures of the task and training that have the most cells
    with this metric on this split. `where`: only these cells, by any column.
    """
    table = select_finished(read("training"), "curves", where)
    measured = sorted({f"{s} {m}" for s, m in zip(table.split, table.metric)})
    table = table[(table.split == split) & (table.metric == metric)]
    if measured and table.empty:
        raise RankfallError(f"figure curves: no finished cell has {split} {metric}; there is: {', '.join(measured)}")
    table, task = one_of(table, "curves", "task", task)
    if training is None and (table.epoch > 0).any():
        table = table[table.groupby("training").epoch.transform("max") > 0]
    table, training = one_of(table, "curves", "training", training)
    shown = panels_of(table, "curves", panels)
    table = table[table.architecture.isin([name for names in shown.values() for name in names])]
    table = deepest(table, "curves", ["architecture"])
    guesses = chances(table, read("cells")) if metric == "accuracy" else []
    chance = say_span(guesses, "{:.3f}".format)
    grid = draw_panels(shown, table, "epoch", "value", bounds=SHARE if metric.startswith("accuracy") else POSITIVE)
    if chance and " to " not in chance:
        grid.refline(y=guesses[0], color=CHANCE, linestyle="--", label="chance")
    grid.set(ylabel=f"{split} {metric}")
    if table.epoch.nunique() < 8:
        grid.set(xticks=sorted(table.epoch.unique()))
    legend_below(grid)
    ends = table[table.epoch == table.groupby("architecture").epoch.transform("max")]
    guess = f" Chance, the best guess without the input, is {chance}." if chance else ""
    names = [name for panel in shown.values() for name in panel]
    whole = select_asked(read("training"), where, task=task, training=training, architecture=names if panels else [])
    text = (
        f"{split.capitalize()} {metric} on {label(task)} by epoch, training {label(training)}: "
        f"{describe_lines(table, ['architecture'], 'value')}. After the last epoch: {describe_ends(ends, 'value', 3)}.{guess}"
        f"{describe_missing(table, ['architecture'], 'value', whole)}"
    )
    return Picture(
        grid.figure, text, summary(table, ["architecture", "epoch"], "value").assign(quantity=f"{split} {metric}")
    )
