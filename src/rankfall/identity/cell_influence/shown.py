"""Declare what is shown of `cell_influence`: charts."""

from rankfall.identity.influence.shown import equal_places
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level

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
