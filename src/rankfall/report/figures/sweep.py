"""A sweep: the residual against depth, one line for each value of what was swept, one panel for each value of
what else differs. Works for any axis of the grid, since every table of cells carries them all.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.errors import RankfallError
from rankfall.report.labels import labels, order
from rankfall.report.selection import finished, one_a_seed, said
from rankfall.report.style import Picture, band, canvas, palette, spaced, tower

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series

TABLES = ["law"]
# Linear above 10^-1, in the logarithm below: a residual of 0.5 and one of 10^-1000 are both readable.
TICKS = {0.0: "1", np.log10(0.5): "0.5", -1.0: "0.1", -3.0: "$10^{-3}$", -10.0: tower(1), -100.0: tower(2)}


def sweep(
    read: "Callable[[str], DataFrame]",
    *,
    lines: list[str],
    panels: list[str] = [],
    x: str = "layer",
    where: dict[str, Any] = {},
    columns: int = 4,
    shared: bool = True,
) -> Picture:
    """`lines`, `panels`: columns of the table whose values distinguish lines and panels. `where`: only these cells, by column,
    a value or a list. `x`: `layer`, or a column, such as `depth`, against which the last layer is drawn. `shared`: all panels have
    one vertical axis."""
    data = finished(read("law"), "sweep", where)
    for needed in (*lines, *panels, x):
        if needed not in data:
            raise RankfallError(f"figure sweep: {needed!r} is not a column of the table law")
    if x != "layer":
        data = data[data.layer == data.depth]
    data = data.assign(line=joined(data, lines), panel=joined(data, panels, named=True))
    one_a_seed(data, "sweep", ["panel", "line", *([x] if x != "layer" else [])])
    identical = int(
        data.log10_residual.isna().sum()
    )  # equal to the last digit: a residual of zero, which the axis cannot show
    noise = data[data.floor]
    data = data[data.log10_residual.notna() & ~data.floor]
    if data.empty:
        raise RankfallError("figure sweep: no finished cell has a residual above rounding noise")
    names, titles = (sorted(data[column].unique(), key=order) for column in ("line", "panel"))
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure, axes = canvas(rows, columns, max(2.5 * columns + 1.6, 5.5), 2.4 * rows + 0.9, sharex=True, sharey=shared)
    flat = [panel for row in axes for panel in row]
    findings = []
    for axis, title in zip(flat, titles):
        part = data[data.panel == title]
        for place, (colour, name) in enumerate(zip(palette(len(names)), names)):
            mean = per_seed(part[part.line == name], x)
            if len(mean):
                look = {"linewidth": 3.6 - 2.4 * place / len(names), "marker": "o" if x != "layer" else None}
                band(axis, mean[x], mean["mean"], mean["std"], colour, name, markersize=3, **look)
                if ((noise.line == name) & (noise.panel == title)).any():
                    axis.plot(mean[x].iloc[-1:], mean["mean"].iloc[-1:], "X", color=colour, markersize=7)
        scaled(axis, data if shared else part, x)
        axis.set_title(title, fontsize=8.5)
        findings.append(finding(part, title, x))
    for column in range(columns):
        below = flat[column : len(titles) : columns][-1]  # the lowest that is used; shared axes label only the last row
        below.set_xlabel(x)
        below.tick_params(labelbottom=True)
    for row in axes:
        row[0].set_ylabel("|res(X)| / |X|")
    for axis in flat[len(titles) :]:
        axis.set_visible(False)
    legend(figure, flat, names, ", ".join(lines))
    text = (
        f"Relative residual by {x} (composite norm, token mean; centred propagation where a centred form is known), "
        f"{said(where) or 'all cells'}; {data.key.nunique()} cells, {data.seed.nunique()} seeds. Lines are geometric means "
        "over seeds and "
        "samples, bands one standard deviation over seeds of the logarithm. "
        + (f"{identical} values are left out, of rows that are identical to the last digit. " if identical else "")
    )
    if len(noise):
        text += (
            f"Of {', '.join(sorted(noise.line.unique()))} {len(noise)} values are left out, rounding noise of a plain float64 pass; "
            "a cross is where such a line ends. "
        )
    return Picture(figure, text + " ".join(findings))


def joined(data: "DataFrame", columns: list[str], named: bool = False) -> "Series | str":
    """The values of some columns as one label; `named`: with the columns' names, but for those that say what they are."""
    texts = []
    for column in columns:
        said = labels(data[column].unique())
        prefix = f"{column} " if named and column not in ("task", "architecture", "training") else ""
        texts.append(data[column].map({value: prefix + label for value, label in said.items()}))
    return texts[0].str.cat(texts[1:], ", ") if texts else ""


def per_seed(data: "DataFrame", x: str) -> "DataFrame":
    """Mean and deviation over seeds of the logarithm, samples averaged within a seed first."""
    each = data.groupby([x, "seed"]).log10_residual.mean()
    return each.groupby(x).agg(["mean", "std"]).fillna(0.0).reset_index()


def scaled(axis: "Axes", data: "DataFrame", x: str) -> None:
    """Axes for these residuals; ticks spaced so that they are readable."""
    low, high = data.log10_residual.min(), max(0.0, data.log10_residual.max())
    axis.set_yscale("symlog", linthresh=1, linscale=0.8)
    last = int(np.log10(max(1.0, -low)))
    kept = (
        TICKS if last < 5 else {value: TICKS[value] for value in (0.0, -10.0)}
    )  # with many decades the first have no room
    ticks = kept | {-(10.0**power): tower(power) for power in spaced(3, last)}
    ticks = {value: label for value, label in ticks.items() if low * 1.2 <= value <= high}
    axis.set_yticks(list(ticks), list(ticks.values()))
    axis.set_yticks([], minor=True)
    axis.set_ylim(low * 1.3 - 0.02, high + 0.06)
    if x in ("depth", "width", "heads"):
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")


def legend(figure: "Figure", axes: "list[Axes]", names: list[str], title: str) -> None:
    """One for all panels, in the order of the names."""
    drawn = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels())}
    names = [name for name in names if name in drawn]
    handles = [drawn[name] for name in names]
    figure.legend(handles, names, loc="outside right upper", fontsize=8, title=title, title_fontsize=8)


def finding(part: "DataFrame", title: str, x: str) -> str:
    """Where rank is lost fastest and where it is kept best, at the end of the axis."""
    end = part[part[x] == part[x].max()].groupby("line").log10_residual.mean().sort_values()
    values = [f"{name} {10**value:.3g}" if value > -3 else f"{name} 10^{value:.4g}" for name, value in end.items()]
    between = f"from {values[0]} to {values[-1]}" if len(values) > 1 else values[0]
    return f"{title + ': ' if title else ''}{between} at {x} {part[x].max():g}."
