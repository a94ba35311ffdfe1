"""Declare the table `prediction_scores` and what is shown of it: how well measurements at birth predict the outcomes of networks."""

from rankfall import Chart, Read, Table, TableQuestion, count_words, declare_table
from studies.prediction.prediction_scores.scores import DESIGN, by_gain, select_null, statistic_rows


def columns() -> Table:
    """Declare the table: one row per model, statistic, and null model over which the gain is measured."""
    return declare_table(
        "prediction_scores",
        "each task, outcome, statistic, model and null model",
        """
        task text: the task's name in the config; all: mean over tasks that have a value
        outcome text: trains; over_chance: accuracy over chance after the budget; steps: to the threshold, fewer is better and never is
            last; largest_depth: at which half of the seeds train, of each architecture
        statistic text: auc: share of pairs of networks in the right order, 0.5 knows nothing; somers_d: Somers' D, right pairs less
            wrong ones over all pairs whose outcomes differ, 0 knows nothing; r2: share of squared deviations from the mean that is
            explained, below 0 worse than the mean. All on architectures that were left out, pairs within one fold
        kind text: null: a null model; alone: of one predictor; added: of it and the null model `over`; together: of all predictors, by
            themselves or beside a null model
        model text: what it is given
        predictor text?: of alone and added; else null
        value float?: null: see value_reason
        low float?: lower end of the interval of 95%, over architectures drawn anew
        high float?: its upper end
        over text: the null model that the gain is over: depth and parameters; or architecture and depth, which knows the parts of the
            architecture and each of them times the depth
        gain float?: value less that of the null model `over`
        gain_low float?: lower end of its interval, of the same draws
        gain_high float?: its upper end
        verdict text: of alone: predicts, does not predict, undecided; of added: adds, adds nothing, undecided (docs/prediction.md);
            else empty
        tasks int: that it is the mean of: those whose networks do not all end alike
        networks int: that are asked
        architectures int: that these are of
        pairs int: of networks that count; of r2 networks
        known float?: share of the networks of which the predictor is known; null: not of one
        value_reason text: why there is no value; else empty
        """,
        key="task outcome statistic model over",
        cells=False,
    )


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
    """Return the answer on the page, empty without numbers."""
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
