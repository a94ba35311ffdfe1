"""What the page draws of the regression."""

from rankfall.report.page.chart import POSITIVE, Chart

CHARTS = (
    Chart(
        "census_choices",
        "What each choice of a design multiplies the kept residual by",
        "A regression over the model types of the transformers library, all other choices equal. The table has the intervals.",
        "choice",
        "effect",
        "",
        "factor",
        kind="points",
        line="choice",
        choose=(),
        within=POSITIVE,
        place=77,
        study="rank",
    ),
)
