"""Declare the table `states` and what is shown of it: sizes and directions of each layer's states.

The figure: a quantity of states by layer, by length, or by any column of the grid: size, cosine, stable ranks, residual.
"""

from typing import Any, Literal

import numpy as np

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.rank.sweep import describe_finding, draw_points, select_points
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.lines import summary
from rankfall.report.page.chart import NETWORK, Chart
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import describe_filter, select
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "states",
        "each cell, layer, choice of what is left out and quantity",
        """
        layer int 0..depth: 0 is what enters the first block
        tokens int [tokens]: T, sentinels included
        left_out text: nothing; first token (a sentinel, where one stands first); largest channels: those with the largest root mean
            square over tokens and samples of this layer; both. Sentinels count as tokens
        channels int: how many channels are left out
        quantity text: norm: root mean square of all entries; cosine: mean over pairs of tokens; stable_rank: sum s^2 / max s^2 of the
            singular values s; stable_rank_gram: sum s^4 / max s^4, that of X X^T; residual: |res(X)| / |X| about the mean token, composite
            norm
        value float?: mean over samples; null: see value_reason
        deviation float?: standard deviation over samples; null: one sample, or no value
        floor_share float?: share of samples whose residual is rounding noise of float64, as in `residuals`; null: another quantity
        value_reason text: why there is no value; else empty
        """,
        key="layer left_out quantity",
    )


CHARTS = (
    Chart(
        "states",
        "Size and direction of states by layer",
        "How large the states are, how parallel their tokens, and over how many directions they spread; also without the first token and "
        "without the largest channels. A cosine near 1 and a stable rank near 1 mean that tokens have become alike.",
        "layer",
        "value",
        "layer",
        "value",
        choose=(*NETWORK, "quantity", "left_out"),
        named_by="quantity",
        start={"quantity": "cosine", "left_out": "nothing"},
        place=15,
    ),
)


TITLES = {
    "norm": "root mean square",
    "cosine": "mean cosine of tokens",
    "stable_rank": "sum s² / max s²",
    "stable_rank_gram": "sum s⁴ / max s⁴",
    "residual": "|res(X)| / |X|",
}


def figure(
    read: Read,
    *,
    quantity: Literal["norm", "cosine", "stable_rank", "stable_rank_gram", "residual"] = "cosine",
    left_out: Literal["nothing", "first token", "largest channels", "both"] = "nothing",
    lines: list[str] = ["architecture"],
    panels: list[str] = ["task"],
    x: str = "layer",
    where: dict[str, Any] = {},
) -> Picture:
    """Draw a quantity of states.

    `lines`, `panels`: columns whose values distinguish them. `x`: `layer`, or a column, such as `tokens` or `depth`, against which the
    last layer is drawn. `where`: only these cells.
    """
    chosen = {"quantity": quantity, "left_out": left_out}
    log = "y" if quantity in ("norm", "residual") else ""
    title = f"{TITLES[quantity]}" + (
        "" if left_out == "nothing" else f" without {left_out if left_out != 'both' else 'first token and channels'}"
    )
    return draw_means(read("states"), "states", chosen, title, lines, panels, x, where, log)


def draw_means(
    table: DataFrame,
    figure: str,
    chosen: dict[str, Any],
    title: str,
    line_columns: list[str],
    panels: list[str],
    x: str,
    where: dict[str, Any],
    log: str,
) -> Picture:
    """Draw means over seeds of the values of the chosen rows, a line and a panel for each value of some columns."""
    whole, rows = select_points(table, figure, line_columns, panels, x, where)
    rows = select(rows, chosen)
    missing = describe_missing(rows, ["panel", "line"], "value", whole)
    rows = rows[rows.value.notna()].assign(value=rows.value.astype(float))
    rows = rows[rows.value > 0] if log else rows
    if rows.empty:
        raise RankfallError(f"figure {figure}: no finished cell has a {title}.{missing}")
    rows = rows.rename(columns={"value": title})
    panels_side_by_side = min(rows.panel.nunique(), 3)
    grid, shown, _ = draw_points(rows, title, line_columns, x, col_wrap=panels_side_by_side, height=2.2, log=log)
    ends = shown.assign(**{title: np.log10(shown[title])}) if log else shown
    write = (lambda value: f"{10**value:.3g}") if log else "{:.3g}".format
    at = "by layer" if x == "layer" else f"after the last layer, by {x}"
    seeds = describe_lines(rows, ["panel", "line"], band="one standard deviation" + " of the logarithm" * bool(log))
    return Picture(
        grid.figure,
        f"{title} {at}, {describe_filter(where) or 'all cells'}: {seeds}. {describe_finding(ends, title, x, write)}{missing}",
        summary(shown, ["panel", "line", x], title, log=bool(log)),
    )
