"""Chart of the residual by layer of real models for the page."""

from rankfall.rank.model_residuals.rows import RESIDUAL
from rankfall.rank.residuals.chart import TALL
from rankfall.report.page.chart import MODEL, POSITIVE, Chart

CHARTS = (
    Chart(
        "models",
        "Residual by layer of real models",
        "Transformer: the model as it is; SAN: its attention alone, without skip connections and MLPs; SAN+skip and SAN+MLP: with these.",
        "layer",
        "value",
        "layer",
        TALL,
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        where=RESIDUAL,
        within=POSITIVE,
        opening=True,
        place=70,
    ),
)
