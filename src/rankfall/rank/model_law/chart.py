"""Chart of the residual of real models without a rounding floor for the page."""

from rankfall.report.page.chart import MODEL, Chart

CHARTS = (
    Chart(
        "model_law",
        "Residual of real models without a rounding floor",
        "The same, computed without rounding: models without skip connections lose rank within a few layers.",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        scale="symlog",
        place=80,
    ),
)
