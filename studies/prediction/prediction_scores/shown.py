"""What the page shows of the scores: a chart, and whether measurements at birth tell more than the configuration."""

import pandas as pd

from rankfall import Chart, DataFrame, Read, TableQuestion, count_words, join_words
from studies.prediction.prediction_scores.figure import describe_additions
from studies.prediction.prediction_scores.rows import ALL, DESIGN, SIZE, by_gain, say_where, select_null, statistic_rows

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
    design, size = (select_null(rows, null).iloc[0] for null in (DESIGN, SIZE))
    alone = rows[(rows.kind == "alone") & (rows.over == DESIGN) & (rows.verdict == "predicts")]
    known = [
        f"{one.predictor.replace('_', ' ')} ({one.value:.0%})"
        for one in alone.sort_values("value", ascending=False).itertuples()
    ]
    better = f"{join_words(known)} {'does' if len(known) == 1 else 'do'}" if known else "none does"
    return (
        f"Who reads the configuration (the parts of an architecture and its depth) puts {design.value:.0%} of pairs of networks in the "
        f"right order by whether they train, on architectures left out; depth and parameters put {size.value:.0%} "
        f"({say_where(table, ALL, design.tasks)}; {count_words(int(design.networks), 'network')}, "
        f"{count_words(int(design.architectures), 'architecture')}). "
        f"Of {count_words(len(added), 'predictor')} measured before training, {better} better than nothing (50%) for sure, alone. "
        f"Beside architecture and depth: {describe_additions(added)}{describe_together(rows)}",
        "",
    )


def describe_together(rows: DataFrame) -> str:
    """Describe all predictors together. No verdict was fixed for them, so there are only numbers."""
    (all_of,) = rows[(rows.model == f"{DESIGN} and all predictors") & (rows.over == DESIGN)].itertuples()
    if pd.isna(all_of.gain_low):
        return ""
    return (
        f" All of them together, beside architecture and depth: {all_of.value:.0%}, a gain of {all_of.gain * 100:.0f} points "
        f"(from {all_of.gain_low * 100:.0f} to {all_of.gain_high * 100:.0f}; no verdict was fixed for it)."
    )


SENTENCES = (
    TableQuestion(
        "Does what is measured before training tell more than the configuration?",
        say_prediction,
        place=150,
        study="use",
    ),
)
