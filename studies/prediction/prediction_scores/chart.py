"""The page's chart of the scores."""

from rankfall import Chart

CHARTS = (
    Chart(
        "prediction_scores",
        "What is known at birth, and what becomes of networks",
        "How well a model of what is known before training puts networks of other architectures in order. The auc of one that knows "
        "nothing is 0.5, its somers_d and r2 are 0. Null models know depth and parameters, or the parts of the architecture and depth; "
        "added: a predictor beside the null model `over`.",
        "model",
        "value",
        "",
        "value",
        kind="points",
        line="model",
        choose=("task", "outcome", "statistic", "kind", "over"),
        start={
            "task": "all",
            "outcome": "trains",
            "statistic": "auc",
            "kind": "null",
            "over": "architecture and depth",
        },
        named_by="statistic",
        place=200,
        study="use",
    ),
)
