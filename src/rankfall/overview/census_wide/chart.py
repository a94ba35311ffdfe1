"""The page's chart of the comparison."""

from rankfall.report.page.chart import POSITIVE, Chart

CHARTS = (
    Chart(
        "census_wide",
        "What a small model keeps, and one of the released width",
        "Model types of the transformers library at initialisation: kept of the residual by a small model whose maps are as large as the "
        "released ones, and by one of the released width with as many layers.",
        "kept",
        "kept_wide",
        "kept by the small model",
        "kept at the released width",
        kind="points",
        line="type",
        choose=(),
        within=POSITIVE,
        place=77,
        study="rank",
    ),
)
