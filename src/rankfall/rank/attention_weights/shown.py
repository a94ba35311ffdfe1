"""Declare the table `attention_weights` and what is shown of it: concentration of the rows of attention weights.

The figure: concentration of attention weights by layer, by length, or by any column of the grid.
"""

from typing import Any, Literal

from rankfall.annotations import DataFrame, Read, Series
from rankfall.rank.states.shown import draw_means
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart
from rankfall.report.schema import Table, declare_table
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "attention_weights",
        "each cell, layer, head, choice of what is left out and quantity",
        """
        layer int 1..depth: 1 is the first block
        tokens int [tokens]: T, sentinels included
        attention_head int?: null: mean of the heads' numbers
        left_out text: nothing, or first token: its row and its column, so that shares are of the weights of all others
        quantity text: of the shares p_j = |a_ij| / sum_j |a_ij| of a row, which are the weights themselves where these are positive and
            sum to one. entropy: -sum p log p, in nats; inverse_participation: sum p^2, one over how many tokens a row attends to;
            largest_share: the largest p; first_share: p of the first token, null where that is left out
        value float?: mean over rows, then over samples; null: see value_reason
        deviation float?: standard deviation over samples; null: one sample, or no value
        rows_without float: share of rows that are left out because all their weights are zero
        value_reason text: why there is no value; else empty
        """,
        key="layer attention_head left_out quantity",
    )


def is_mean_over_heads(table: DataFrame) -> Series:
    """Check whether a row is the mean over heads and not a single head."""
    return table.attention_head.isna()


CHARTS = (
    Chart(
        "attention_weights",
        "How concentrated attention weights are",
        "Mean over heads and rows. Entropy: 0 where a token attends to one token, the logarithm of their number where to all alike; the "
        "inverse participation ratio is 1 and one over their number. The share of the first token shows attention that goes nowhere else.",
        "layer",
        "value",
        "layer",
        "value",
        choose=(*NETWORK, "quantity", "left_out"),
        derive={"whole": is_mean_over_heads},
        where={"whole": True},
        named_by="quantity",
        start={"quantity": "entropy", "left_out": "nothing"},
        within=POSITIVE,
        place=16,
    ),
)


TITLES = {
    "entropy": "entropy, in nats",
    "inverse_participation": "sum of squared shares",
    "largest_share": "largest share of a row",
    "first_share": "share of the first token",
}


def figure(
    read: Read,
    *,
    quantity: Literal["entropy", "inverse_participation", "largest_share", "first_share"] = "entropy",
    left_out: Literal["nothing", "first token"] = "nothing",
    lines: list[str] = ["architecture"],
    panels: list[str] = ["task"],
    x: str = "layer",
    where: dict[str, Any] = {},
) -> Picture:
    """Draw means over heads and rows. Options are those of figure `states`."""
    table = read("attention_weights")
    title = TITLES[quantity] + ("" if left_out == "nothing" else " without the first token")
    chosen = {"quantity": quantity, "left_out": left_out}
    return draw_means(table[is_mean_over_heads(table)], "attention_weights", chosen, title, lines, panels, x, where, "")
