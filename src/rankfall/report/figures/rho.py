"""Accuracy against the share of repeated tokens, one panel a task, one line an architecture: from independent tokens to identical ones."""

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.errors import RankfallError
from rankfall.filters import parts
from rankfall.report.selection import among, finished, left_out, one_a_seed, one_of, said
from rankfall.report.shares import most_frequent
from rankfall.report.style import WHOLE, Picture, band, canvas, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["training", "cells"]
METRICS = {"places": "accuracy", "even_tokens": "accuracy_informative"}


def rho(
    read: "Callable[[str], DataFrame]",
    *,
    training: str | None = None,
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """Test accuracy at the end of training: of places, and of even tokens on the half that is not constant. `training`: the commonest
    unless named; `architectures`: in this order, all unless named."""
    whole = ends(read("training"), read("cells"), where)
    table, training = one_of(whole, "rho", "training", training)
    table = among(table, "rho", "architecture", architectures)
    one_a_seed(table, "rho", ["kind", "architecture", "rho"])
    kinds = sorted(table.kind.unique(), reverse=True)
    names = architectures or sorted(table.architecture.unique())
    figure, axes = canvas(1, len(kinds), 3.9 * len(kinds) + 1.4, 3.5, sharey=True)
    findings = []
    for panel, kind in zip(axes[0], kinds):
        part = table[table.kind == kind]
        for index, (colour, name) in enumerate(zip(palette(len(names)), names)):
            line = part[part.architecture == name].groupby("x").value.agg(["mean", "std"]).fillna(0.0).reset_index()
            # Lines that lie on each other: open marks, each smaller than the one before.
            look = {"marker": "osD^vP*X"[index % 8], "markersize": 10 - index, "fillstyle": "none"}
            band(panel, line.x, line["mean"], line["std"], colour, name, **look)
        references(panel, part, kind)
        ticked(panel, part)
        panel.set_title({"places": "places", "even_tokens": "even tokens, informative half"}[kind])
        findings.append(finding(part, kind, names))
    axes[0][0].set_ylabel("test accuracy")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    shape = table.iloc[0]
    caption = (
        f"Accuracy on fresh sequences against the share of tokens that are one symbol, {shape.length} tokens of {shape.symbols} symbols, "
        f"training {training}{', ' + said(where) if where else ''}. Lines are means over {table.seed.nunique()} seeds, bands "
        "one standard "
        "deviation over seeds. Dashed, computed: what can be reached without positions (places), or by naming the sequence's most "
        "frequent symbol everywhere (even tokens). On the right all tokens are identical. "
        + left_out(whole, table, ("architecture", "training"))
        + " ".join(findings)
    )
    return Picture(figure, caption)


def ends(course: "DataFrame", cells: "DataFrame", where: dict[str, Any]) -> "DataFrame":
    """One row a network: its accuracy on the test set after its last epoch, its task's options, and chance."""
    course = finished(course, "rho", where)
    found = course.task_component.map(parts)
    course = course.assign(kind=found.map(itemgetter(0)), options=found.map(itemgetter(1)))
    course = course[course.kind.isin(METRICS)]
    if course.empty:
        raise RankfallError("figure rho: no finished cell has a task places or even_tokens")
    last = course[(course.split == "test") & (course.epoch == course.groupby("key").epoch.transform("max"))]
    last = last[(last.metric == last.kind.map(METRICS)) & last.options.map(lambda one: one["repeated"] == "null")]
    for name, number in (("rho", float), ("length", int), ("symbols", int)):
        last = last.assign(**{name: last.options.map(itemgetter(name)).map(number)})
    x = -np.log2(1.0 + last.length * (1.0 - last.rho))
    return last.drop(columns="options").assign(x=x).merge(cells[["key", "chance"]], on="key")


def references(panel: "Axes", part: "DataFrame", kind: str) -> None:
    """The dashed line: chance, or the share of the most frequent symbol."""
    points = part.drop_duplicates("x").sort_values("x")
    values = (
        points.chance if kind == "places" else [most_frequent(p.length, p.symbols, p.rho) for p in points.itertuples()]
    )
    panel.plot(points.x, values, linestyle="--", color=WHOLE, linewidth=1.0, label="computed", zorder=4)


def ticked(panel: "Axes", part: "DataFrame") -> None:
    """Shares of repeated tokens, spaced by the logarithm of the number of others."""
    points = part.drop_duplicates("x").sort_values("x")
    panel.set_xticks(list(points.x), [f"{share:.3g}" for share in points.rho], fontsize=8)
    panel.set_xlabel("share of repeated tokens")
    panel.set_ylim(-0.03, 1.03)


def finding(part: "DataFrame", kind: str, names: list[str]) -> str:
    """Accuracy of each architecture at the two ends."""
    low, high = part.rho.min(), part.rho.max()
    values = []
    for name in names:
        one = part[part.architecture == name].groupby("rho").value.mean()
        if {low, high} <= set(one.index):
            values.append(f"{name} {one[low]:.3f} and {one[high]:.3f}")
    return f"{kind.replace('_', ' ').capitalize()}, at shares {low:g} and {high:g}: {', '.join(values)}."
