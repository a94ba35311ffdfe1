"""Chart of the free directions of attention weights of real models for the page."""

from rankfall.identity.attention_identity.rows import FREE, TOLERANCE
from rankfall.report.page.chart import MODEL, POSITIVE, Chart

CHARTS = (
    Chart(
        "model_free",
        "Free directions of attention weights of real models",
        "The same for real models, by the length of the text: weights over more tokens than a head has dimensions always have some.",
        "layer",
        "value",
        "layer",
        "free directions",
        line="model",
        choose=(*MODEL[1:], "tolerance"),
        start={"tolerance": TOLERANCE},
        where=FREE,
        within=POSITIVE,
        place=20,
    ),
)
