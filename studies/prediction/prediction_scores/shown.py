"""What the page shows of the scores: a chart, and whether measurements at birth tell more than the configuration."""

from rankfall import Chart, Read, TableQuestion, count_words
from studies.prediction.prediction_scores.rows import DESIGN, by_gain, select_null, statistic_rows

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


def say_prediction(read: Read) -> tuple[str, str]:
    table = read("prediction_scores")
    if table is None or not len(table):
        return "", ""
    rows = statistic_rows(table, "trains", "auc")
    added = by_gain(rows[rows.value.notna()], DESIGN)
    if added.empty:
        return "", ""
    design = select_null(rows, DESIGN).iloc[0]
    alone = rows[(rows.kind == "alone") & (rows.over == DESIGN) & (rows.verdict == "predicts")]
    return (
        f"The configuration alone puts {design.value:.0%} of pairs of networks in order by whether they train; {len(alone)} of "
        f"{count_words(len(added), 'predictor')} beat chance alone.",
        "",
    )


SENTENCES = (
    TableQuestion(
        "Does what is measured before training tell more than the configuration?",
        say_prediction,
        place=150,
        study="use",
    ),
)
