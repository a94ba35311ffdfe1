"""Whether what is lost at birth matters, in a sentence."""

from __future__ import annotations

from rankfall.overview.prediction_scores.figure import told
from rankfall.overview.prediction_scores.rows import by_gain, null, of
from rankfall.report.labels import many
from rankfall.report.page.question import Read, TableQuestion


def say_prediction(read: Read) -> tuple[str, str]:
    table = read("prediction_scores")
    if table is None or not len(table):
        return "", ""
    rows = of(table, "trains", "auc")
    added = by_gain(rows[rows.value.notna()])
    if added.empty:
        return "", ""
    usual, first = null(rows).iloc[0], added.iloc[0]
    (best,) = rows[(rows.kind == "alone") & (rows.predictor == first.predictor)].itertuples()
    return (
        f"depth and parameters alone put {usual.value:.0%} of pairs of networks in the right order by whether they train, on "
        f"architectures left out ({many(int(usual.networks), 'network')}, {many(int(usual.architectures), 'architecture')}; 50% knows "
        f"nothing). Of {many(len(added), 'predictor')} the most is added by {first.predictor.replace('_', ' ')}: {first.gain:+.1%} "
        f"[{first.gain_low:+.1%}, {first.gain_high:+.1%}], alone {best.value:.0%}. {told(added)}",
        "",
    )


SENTENCES = (
    TableQuestion("Does what is lost at birth matter after training?", say_prediction, place=150, study="use"),
)
