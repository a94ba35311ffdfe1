"""What the page draws of the census: one line a model type."""

from rankfall.report.page.chart import POSITIVE, Chart

CHARTS = (
    Chart(
        "census",
        "What model types keep at initialisation",
        "Residual of the last state over that of the first, of each model type of the transformers library with this mask, this way to mix "
        "tokens and norms that stand here.",
        "type",
        "kept",
        "",
        "kept of the residual",
        kind="points",
        line="type",
        choose=("mask", "mixer", "norm_place"),
        start={"mask": "causal", "mixer": "attention", "norm_place": "before the branch"},
        within=POSITIVE,
        place=74,
        study="rank",
    ),
)
