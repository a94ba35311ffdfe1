"""Declare the table `cell_influence` and what is shown of it: influence of each position on the last token, in causal cells."""

from rankfall.identity.influence.shown import equal_places
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    return declare_table(
        "cell_influence",
        "each cell, layer and place",
        """
        layer int: 1 is the first block
        place int: 1 is the first token, sentinels included
        places int [tokens]: how many there are
        share float?: of the influence on the last token: norm of d e_n / d x_i over the sum, mean over samples; null: see value_reason
        deviation float?: over samples; null: one sample, or no share
        samples int: samples that it is over
        value_reason text?: why there is no share: influences that are zero or beyond the range of float64; else empty
        """,
        key="layer place",
    )


CHARTS = (
    Chart(
        "cell_influence",
        "Influence of each place on the last token, trained",
        "The same for networks of this run, after each of their layers.",
        "place",
        "share",
        "place of a token",
        "share of the influence",
        choose=(*NETWORK, "layer"),
        start={"training": "converged"},
        within=SHARE,
        beside=(Level("equal shares", "equal_places"),),
        derive={"equal_places": equal_places},
        place=60,
        study="position",
    ),
)
