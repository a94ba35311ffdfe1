"""The page's chart of the census by layer."""

from rankfall.report.page.chart import POSITIVE, Chart

CHARTS = (
    Chart(
        "census_type",
        "Residual by layer of a model type at initialisation",
        "Each model type of the transformers library as the library initialises it, small: what is left of the differences between tokens.",
        "layer",
        "residual",
        "layer",
        "relative residual",
        line="stream",
        choose=("type",),
        start={"type": "bert"},
        within=POSITIVE,
        place=75,
        study="rank",
    ),
)
