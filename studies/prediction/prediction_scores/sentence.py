"""The sentences on whether measurements at birth tell more than the configuration."""

from rankfall import Read, TableQuestion, count_words
from studies.prediction.prediction_scores.rows import DESIGN, by_gain, select_null, statistic_rows


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
