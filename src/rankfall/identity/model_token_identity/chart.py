"""Chart of the identifiability of tokens in real models for the page."""

from rankfall.identity.token_identity.rows import ASKED, is_own
from rankfall.report.page.chart import MODEL, SHARE, Chart, Level

CHARTS = (
    Chart(
        "model_identity",
        "Tokens of real models found again, by layer",
        "The same for real models, as they are (transformer) or with parts left out.",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        line="variant",
        choose=(*MODEL, "map", "loss", "candidates", "distance"),
        start=ASKED,
        derive={"own": is_own},
        where={"own": True},
        within=SHARE,
        beside=(Level("chance", "chance"),),
        place=40,
    ),
)
