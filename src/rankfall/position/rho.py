"""Accuracy against the share of repeated tokens, from independent to identical tokens: one panel per task, one line per architecture."""

from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.repeats import count_common, count_maxima
from rankfall.report.captions import describe_ends, describe_lines, describe_missing
from rankfall.report.colours import WHOLE, colours
from rankfall.report.lines import SHARE, legend_below, lines, summary
from rankfall.report.looks import label
from rankfall.report.selection import among, describe_filter, one_a_seed, one_of, select_asked, select_finished
from rankfall.report.style import Picture

TABLES = ["training", "cells"]
BEST = {
    "places": "without positions (places)",
    "even_tokens": "by naming the most frequent symbol everywhere (even tokens)",
}
METRICS = {"places": "accuracy", "even_tokens": "accuracy_informative"}


def figure(
    read: Read,
    *,
    training: str | None = None,
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the test accuracy at the end of training: of places, and of even tokens on the half that is not constant.

    `training`: by default the most frequent; `architectures`: in this order, by default all.
    """
    repeated = select_repeated(read("training"))
    table, training = one_of(ends(select_finished(repeated, "rho", where), read("cells")), "rho", "training", training)
    table = among(table, "rho", "architecture", architectures)
    one_a_seed(table, "rho", ["kind", "architecture", "rho"])
    kinds = sorted(table.kind.unique(), reverse=True)
    names = architectures or sorted(table.architecture.unique())
    titles = {"places": "places", "even_tokens": "even tokens, informative half"}
    table = table.assign(panel=table.kind.map(titles), x=table.x.astype(float))
    grid = lines(
        table, "x", "value", "architecture", colours(names), col="panel", col_order=[titles[kind] for kind in kinds], height=2.5,
        bounds=SHARE,
    )  # fmt: skip
    for kind in kinds:
        panel, points = grid.axes_dict[titles[kind]], table[table.kind == kind].drop_duplicates("x").sort_values("x")
        values = points.chance  # or the share of the most frequent symbol
        if kind != "places":
            values = [most_frequent(p.length, p.symbols, p.rho) for p in points.itertuples()]
        panel.plot(points.x, values, linestyle="--", color=WHOLE, linewidth=1.0, label="computed", zorder=4)
        # Shares of repeated tokens, spaced by the logarithm of the number of other tokens.
        panel.set_xticks(list(points.x), [f"{share:.3g}" for share in points.rho], fontsize=8)
    grid.set(
        ylabel="test accuracy",
        xlabel="share that is one symbol (spaced by the logarithm of the rest)",
        ylim=(-0.03, 1.03),
    )
    legend_below(grid, 3 if len(kinds) == 1 else 6)
    sizes = [" or ".join(map(str, sorted(table[name].unique()))) for name in ("length", "symbols")]
    dashed = " and ".join(BEST[kind] for kind in kinds)
    by = ["architecture", "kind", "rho"]
    caption = (
        f"Accuracy on fresh sequences of {sizes[0]} tokens of {sizes[1]} symbols, by the share of tokens that are one symbol. Training "
        f"{label(training)}{', ' + describe_filter(where) if where else ''}: {describe_lines(table, by)}. "
        f"Dashed: what can be reached {dashed}, computed.{describe_finding(table, kinds)}"
        f"{describe_missing(table, by, whole=select_asked(repeated, where, training=training, architecture=architectures))}"
    )
    return Picture(grid.figure, caption, summary(table, ["kind", "architecture", "rho"], "value"))


def select_repeated(course: DataFrame) -> DataFrame:
    """Return the networks of tasks with a share of one symbol, with the options of their tasks as columns."""
    components = course.task_component.map(parts)
    course = course.assign(kind=components.map(itemgetter(0)), options=components.map(itemgetter(1)))
    course = course[course.kind.isin(METRICS)]
    course = course[course.options.map(lambda options: options["repeated"] == "null").astype(bool)]
    for name, number in (("rho", float), ("length", int), ("symbols", int)):
        course = course.assign(**{name: course.options.map(itemgetter(name)).map(number)})
    return course.drop(columns="options")


def ends(course: DataFrame, cells: DataFrame) -> DataFrame:
    """Return one row per network: its test accuracy after the last epoch, and chance."""
    if course.empty:
        raise RankfallError("figure rho: no finished cell has a task places or even_tokens")
    last = course[(course.split == "test") & (course.epoch == course.groupby("key").epoch.transform("max"))]
    last = last[last.metric == last.kind.map(METRICS)]
    x = -np.log2(1.0 + last.length * (1.0 - last.rho))
    return last.assign(x=x).merge(cells[["key", "chance"]], on="key")


def describe_finding(table: DataFrame, kinds: list[str]) -> str:
    """Write the lowest and the highest accuracy at the largest share of repeated tokens."""
    ends = {kind: part[part.rho == part.rho.max()] for kind, part in table.groupby("kind")}
    return "".join(
        f" {kind.replace('_', ' ').capitalize()} at a share of {ends[kind].rho.max():g}: {describe_ends(ends[kind], 'value', 3)}."
        for kind in kinds
    )


@cache
def most_frequent(length: int, symbols: int, rho: float) -> float:
    """Return the expected accuracy of the best answer that is the same for all positions of a sequence."""
    return float(np.arange(length + 1) @ count_maxima(length, symbols, count_common(length, rho))) / length
