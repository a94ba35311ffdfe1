"""Chart of the own share of a token's state in real models for the page."""

from rankfall.identity.attribution.rows import ALL_TOKENS, OWN, equal_shares
from rankfall.report.page.chart import MODEL, SHARE, Chart, Level

CHARTS = (
    Chart(
        "model_own_share",
        "Own share of a token's state in real models",
        "The same for real models, one line for each way to attribute: derivatives (jacobian), attention weights, norms of what is "
        "added, or taking the token out (ablation).",
        "layer",
        "value",
        "layer",
        "own share",
        line="method",
        choose=(*MODEL, "kept_tokens"),
        start={**ALL_TOKENS, "definition": "clean"},
        where=OWN,
        derive={"equal_shares": equal_shares},
        within=SHARE,
        beside=(Level("equal shares", "equal_shares"),),
        place=60,
    ),
)
