"""Chart of the identifiability of tokens for the page."""

from rankfall.identity.token_identity.rows import ASKED, is_own
from rankfall.report.page.chart import NETWORK, SHARE, Chart, Level

CHARTS = (
    Chart(
        "identity",
        "Tokens found again, by layer",
        "A map leads each token's state back towards the embeddings: share of the tokens for which their own is then the nearest. Naive: "
        "without a map.",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        choose=(*NETWORK, "map", "loss", "candidates", "distance"),
        start={"training": "converged", **ASKED},
        derive={"own": is_own},
        where={"own": True},
        within=SHARE,
        beside=(Level("chance", "chance"),),
        place=30,
    ),
)
