"""Chart of the influence of each position in untrained stacks for the page."""

from rankfall.identity.influence.rows import SHARES, curve, equal_places
from rankfall.report.page.chart import SHARE, Chart, Level

CHARTS = (
    Chart(
        "influence",
        "Influence of each place on the last token, untrained",
        "Of networks whose tokens see only those before them, by derivatives (jacobian), beside formulas for it (the others): the less "
        "influence a place has, the less the last token knows of it.",
        "place",
        "share",
        "place of a token",
        "share of the influence",
        line="curve",
        scale="log",
        choose=("depth", "length", "alpha"),
        where=SHARES,
        derive={"curve": curve, "equal_places": equal_places},
        within=SHARE,
        beside=(Level("equal shares", "equal_places"),),
        place=50,
        study="position",
    ),
)
