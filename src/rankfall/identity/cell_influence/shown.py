"""Declare the table `cell_influence` and what is shown of it: influence of each position on the last token, in causal cells."""

from rankfall.identity.influence.shown import equal_places
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.schema import Column, Table


def columns() -> Table:
    """Declare the table: one row per position."""
    return Table(
        "cell_influence",
        "a cell x layer x place",
        (
            Column("layer", "int", "1 is the first block"),
            Column("place", "int", "1 is the first token, sentinels included"),
            Column("places", "int", "how many there are", unit="tokens"),
            Column(
                "share",
                "float",
                "of the influence on the last token: norm of d e_n / d x_i over the sum, mean over samples; null: see value_reason",
                nullable=True,
            ),
            Column("deviation", "float", "over samples; null: one sample, or no share", nullable=True),
            Column("samples", "int", "samples that it is over"),
            Column(
                "value_reason",
                "text",
                "why there is no share: influences that are zero or beyond the range of float64; else empty",
                nullable=True,
            ),
        ),
        key=("layer", "place"),
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
