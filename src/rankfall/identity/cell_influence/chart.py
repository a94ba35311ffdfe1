"""Chart of the influence of each position in cells for the page."""

from rankfall.identity.influence.rows import equal_places
from rankfall.report.page.chart import NETWORK, SHARE, Chart, Level

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
