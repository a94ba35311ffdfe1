"""Chart of the own share of a token's state for the page."""

from rankfall.identity.attribution.rows import JACOBIAN, OWN, equal_shares
from rankfall.report.page.chart import NETWORK, SHARE, Chart, Level

CHARTS = (
    Chart(
        "own_share",
        "Own share of a token's state",
        "How much of a token's state comes from its own input, by several ways to attribute it.",
        "layer",
        "value",
        "layer",
        "own share",
        choose=(*NETWORK, "method", "kept_tokens"),
        start={"training": "converged", **JACOBIAN},
        where=OWN,
        derive={"equal_shares": equal_shares},
        within=SHARE,
        beside=(Level("equal shares", "equal_shares"),),
        place=50,
    ),
)
