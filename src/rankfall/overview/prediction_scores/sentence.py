"""Whether what is lost at birth matters, in a sentence."""

import pandas as pd

from rankfall.annotations import DataFrame
from rankfall.overview.prediction_scores.figure import describe_additions
from rankfall.overview.prediction_scores.rows import ALL, NULL, by_gain, null, of, say_where
from rankfall.report.labels import join, many
from rankfall.report.page.question import Read, TableQuestion


def say_prediction(read: Read) -> tuple[str, str]:
    table = read("prediction_scores")
    if table is None or not len(table):
        return "", ""
    rows = of(table, "trains", "auc")
    added = by_gain(rows[rows.value.notna()])
    if added.empty:
        return "", ""
    usual, verdicts = null(rows).iloc[0], describe_additions(added)
    alone = rows[(rows.kind == "alone") & (rows.verdict == "predicts")].sort_values("value", ascending=False)
    known = [f"{one.predictor.replace('_', ' ')} ({one.value:.0%})" for one in alone.itertuples()]
    better = f"{join(known)} {'does' if len(known) == 1 else 'do'}" if known else "none does"
    return (
        f"Depth and parameters alone put {usual.value:.0%} of pairs of networks in the right order by whether they train, on "
        f"architectures left out ({say_where(table, ALL, usual.tasks)}; {many(int(usual.networks), 'network')}, "
        f"{many(int(usual.architectures), 'architecture')}). "
        f"Of {many(len(added), 'predictor')}, {better} better than nothing (50%) for sure, alone. "
        f"Beside depth and parameters: {verdicts[0].lower()}{verdicts[1:]}{describe_together(rows)}",
        "",
    )


def describe_together(rows: DataFrame) -> str:
    """Of this no verdict was fixed, so it has numbers alone."""
    (all_of,) = rows[rows.model == f"{NULL} and all predictors"].itertuples()
    if pd.isna(all_of.gain_low):
        return ""
    return (
        f" All of them together, beside depth and parameters: {all_of.value:.0%}, a gain of {all_of.gain * 100:.0f} points "
        f"(from {all_of.gain_low * 100:.0f} to {all_of.gain_high * 100:.0f}; no verdict was fixed for it)."
    )


SENTENCES = (
    TableQuestion("Does what is lost at birth matter after training?", say_prediction, place=150, study="use"),
)
