"""Chart of the free directions of attention weights for the page."""

from rankfall.identity.attention_identity.rows import FREE, TOLERANCE
from rankfall.report.page.chart import NETWORK, POSITIVE, Chart

CHARTS = (
    Chart(
        "free",
        "Free directions of attention weights",
        "In how many directions a row of attention weights can change, its sum too, without any change of the layer's output, mean over "
        "heads. More than 0: the weights do not say by themselves where the output comes from.",
        "layer",
        "value",
        "layer",
        "free directions",
        choose=(*NETWORK, "tolerance"),
        start={"training": "converged", "tolerance": TOLERANCE},
        where=FREE,
        most=("tokens",),
        within=POSITIVE,
        place=10,
    ),
)
