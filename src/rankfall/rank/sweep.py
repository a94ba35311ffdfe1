"""A sweep: the residual against depth, one line for each value of the swept columns, one panel for each value of other columns.

It works for any axis of the grid, since every table of cells has them as columns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rankfall.annotations import Axes, DataFrame, FacetGrid, Read, Series
from rankfall.design import Training, names
from rankfall.errors import RankfallError
from rankfall.rank.law.shown import clear, has_no_residual
from rankfall.report.captions import describe_ends, describe_lines, describe_missing
from rankfall.report.colours import colours
from rankfall.report.labels import join, labels, many, order
from rankfall.report.lines import legend_below, steps, summary
from rankfall.report.lines import lines as draw_lines
from rankfall.report.selection import describe_filter, one_a_seed, select_asked, select_finished
from rankfall.report.settings import PARTS
from rankfall.report.style import Picture, power, space_ticks, tower

TABLES = ["law"]
# The axis is linear in log10 of the residual above 10^-1 and logarithmic in it below, so that 0.5 and 10^-1000 are both readable.
NOISE = "rounding noise of a plain float64 pass"
NAMED = 4  # panels listed in the caption
HALF = float(np.log10(0.5))
DOUBLED = ("tokens", "depth", "width", "heads")  # on a logarithmic axis
TICKS = {0.0: "1", HALF: "0.5", -1.0: "0.1", -3.0: "$10^{-3}$", -10.0: tower(1), -100.0: tower(2)}


def figure(
    read: Read,
    *,
    lines: list[str],
    panels: list[str] = [],
    x: str = "layer",
    where: dict[str, Any] = {},
    columns: int = 4,
    shared: bool = True,
) -> Picture:
    """Draw the residual.

    `lines`, `panels`: columns of the table whose values distinguish lines and panels. `where`: only these cells, by column, a value or a
    list. `x`: `layer`, or a column, such as `depth`, against which the last layer is drawn. `shared`: all panels share one vertical
    axis.
    """
    whole, data = select_points(read("law"), "sweep", lines, panels, x, where)
    left_out, data = data[has_no_residual(data)], without_gaps(data, x)
    if data.empty:
        raise RankfallError("figure sweep: no finished cell has a residual above rounding noise")
    look = {"col_wrap": min(columns, 4), "height": 1.8, "shared": (True, shared)}
    look |= {"marker": None} if x == "layer" else {}
    grid, by_seed, palette = draw_points(data, "log10_residual", lines, x, **look)
    for title, axis in grid.axes_dict.items():
        scale_axis(axis, data if shared else data[data.panel == title])
        ends = left_out[left_out.panel == title].line.unique() if x == "layer" else []
        for name in [name for name in ends if name in palette]:
            line = by_seed[(by_seed.panel == title) & (by_seed.line == name)].groupby(x).log10_residual.mean()
            axis.plot(line.index[-1:], line.iloc[-1:], "X", color=palette[name], markersize=7)
    grid.set(xlabel=x, ylabel="|res(X)| / |X|")
    reasons = left_out.value_reason.where(~left_out.floor.fillna(False).astype(bool), NOISE).value_counts()
    counted = ", ".join(f"{reason} ({many(count, 'value')})" for reason, count in reasons.items())
    dropped = f"Residuals are missing, and lines end with a cross: {counted}. " * bool(counted)
    by = ["panel", "line"] if panels else ["line"]
    seeds = describe_lines(data, by, band="one standard deviation of the logarithm", mean="geometric means")
    text = (
        f"Relative residual by {x}, {describe_filter(where) or 'all cells'}: {seeds}. {dropped}"
        f"{describe_finding(by_seed, 'log10_residual', x, power)}{describe_differences(data, [*lines, *panels, x])}"
        f"{describe_missing(data, by, whole=whole)}"
    )
    points = summary(by_seed, ["panel", "line", x], "log10_residual")
    return Picture(grid.figure, text, points)


def draw_points(
    data: DataFrame, value: str, lines: list[str], x: str, **look: Any
) -> tuple[FacetGrid, DataFrame, dict[Any, str]]:
    """Draw means over seeds of a column of the rows of `select_points`. Return the grid, the drawn rows and the colour of each line."""
    names, titles = (sorted(data[column].unique(), key=order) for column in ("line", "panel"))
    palette = colours(names) if lines == ["architecture"] else steps(names)
    by_seed = data.groupby(["panel", "line", x, "seed"])[value].mean().reset_index()
    grid = draw_lines(by_seed, x, value, "line", palette, col="panel", col_order=titles, **look)
    for axis in grid.axes.flat if x in DOUBLED else ():
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
    legend_below(grid, 6, title=", ".join(lines))
    return grid, by_seed, palette


def select_points(
    table: DataFrame, figure: str, lines: list[str], panels: list[str], x: str, where: dict[str, Any]
) -> tuple[DataFrame, DataFrame]:
    """Return the requested rows and those of finished cells, with the labels of their `line` and `panel`.

    If `x` is another column than `layer`, only rows of the last layer are returned.
    """
    for column in (*lines, *panels, x):
        if column not in table:
            raise RankfallError(f"figure {figure}: {column!r} is not a column of its table")
    select_finished(table, figure, where)  # an error if there is none
    whole = select_asked(table, where)
    whole = whole.assign(line=join_labels(whole, lines), panel=join_labels(whole, panels, named=True))
    data = whole[whole.status == "done"]
    data = data if x == "layer" else data[data.layer == data.depth]
    one_a_seed(data, figure, ["panel", "line", *([x] if x != "layer" else [])])
    return whole, data


def without_gaps(data: DataFrame, x: str) -> DataFrame:
    """Return the points at which no seed and no sequence lacks a value. A line ends at the first layer that lacks one."""
    line = ["panel", "line"]
    if x == "layer":
        return data[clear(data, line)]
    return data[~has_no_residual(data).groupby([data[column] for column in (*line, x)]).transform("any")]


def join_labels(data: DataFrame, columns: list[str], named: bool = False) -> Series | str:
    """Join the values of some columns to one label. `named`: with the columns' names, except for self-explanatory ones."""
    texts = []
    for column in columns:
        label_of = labels(data[column].unique())
        prefix = f"{column} " if named and column not in ("task", "architecture", "training") else ""
        texts.append(data[column].map({value: prefix + text for value, text in label_of.items()}))
    return texts[0].str.cat(texts[1:], ", ") if texts else ""


def scale_axis(axis: Axes, data: DataFrame) -> None:
    """Set up the vertical axis for these residuals, with readable ticks."""
    low, high = data.log10_residual.min(), max(0.0, data.log10_residual.max())
    axis.set_yscale("symlog", linthresh=1, linscale=0.8)
    last = int(np.log10(max(1.0, -low)))
    # With many decades there is no room for the first ticks.
    first = [0.0] if last >= 20 else [0.0, -10.0] if last >= 5 else [tick for tick in TICKS if tick != HALF or last < 3]
    kept = {value: TICKS[value] for value in first}
    ticks = kept | {-(10.0**power): tower(power) for power in space_ticks(3, last)}
    ticks = {value: label for value, label in ticks.items() if low * 1.2 <= value <= high}
    axis.set_yticks(list(ticks), list(ticks.values()))
    axis.set_yticks([], minor=True)
    axis.set_ylim(low * 1.3 * 10 ** (0.02 * last) - 0.02, high + 0.06)


def describe_finding(by_seed: DataFrame, value: str, x: str, write: Callable[[float], str]) -> str:
    """Write which lines have the smallest and the largest value at the end of the axis, by panel; empty for many panels."""
    ends = []
    for panel, part in by_seed.groupby("panel"):
        last, count = part[part[x] == part[x].max()], part.line.nunique()
        ended = f", where {last.line.nunique()} of {count} lines end" if last.line.nunique() < count else ""
        text = describe_ends(last, value, write, "line", settings=False)
        ends.append(f"{text} at {x} {part[x].max():g}{ended}" + f", in {panel}" * (by_seed.panel.nunique() > 1))
    return f"It is {'; '.join(ends)}." if len(ends) <= NAMED else ""


def describe_differences(data: DataFrame, shown: list[str]) -> str:
    """Name the parts of a setting in which lines of a panel differ although they are not among the shown columns."""
    shown = [*shown, *(names(Training) if "training" in shown else ())]
    parts = [part for part in PARTS if part in data and part not in shown]
    differ = [part for part in parts if data.groupby("panel")[part].nunique().max() > 1]
    return f" Lines of one panel differ in {join(part.replace('_', ' ') for part in differ)} too." if differ else ""
