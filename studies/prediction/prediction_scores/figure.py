"""Draw what each predictor predicts alone and what it adds to each null model, with intervals over architectures."""

from typing import Any, Literal

from rankfall import (
    BLUE,
    CHANCE_COLOUR,
    FIGURE_WIDTH,
    GREY,
    RED,
    Axes,
    DataFrame,
    Picture,
    RankfallError,
    Read,
    collect_labels,
    count_words,
    join_words,
    make_canvas,
    text_below,
)
from studies.prediction.prediction_scores.scores import (
    ALL,
    DESIGN,
    MARGIN,
    MEANS,
    NOTHING,
    NULLS,
    SIZE,
    STATISTICS,
    TITLES,
    by_gain,
    say_where,
    select_null,
    statistic_rows,
)

TABLES = ["prediction_scores"]
VERDICTS = {"adds": BLUE, "predicts": BLUE, "adds nothing": RED, "does not predict": RED, "undecided": GREY}
NAMED = 6  # predictors of one verdict; more are counted
LABELS = {BLUE: "above nothing for all predictors at once", RED: "nothing that matters", GREY: "undecided"}
DASHES = {SIZE: "--", DESIGN: "-"}  # of null models
NUMBERS = ("value", "low", "high", "gain", "gain_low", "gain_high")


def prediction_scores(
    read: Read,
    *,
    outcome: Literal["trains", "over_chance", "steps", "largest_depth"] = "trains",
    statistic: Literal["auc", "somers_d", "r2"] | None = None,
    task: str | None = None,
) -> Picture:
    """Draw models of one predictor beside the null models (left), and the gains over depth and parameters (middle) and over architecture
    and depth (right). `statistic` defaults to the first of the outcome, and `task` null to the mean over tasks."""
    task = task or ALL
    chosen = statistic or STATISTICS[outcome][0]
    table = read("prediction_scores")
    rows = statistic_rows(table, outcome, chosen, task)
    rows = rows.astype(dict.fromkeys(NUMBERS, float))
    added = {null: by_gain(rows[rows.value.notna()], null) for null in NULLS}
    if added[DESIGN].empty:
        why = next(
            iter(rows.value_reason),
            f"{outcome} has {join_words(list(STATISTICS[outcome]))}, of tasks {join_words(sorted(table.task.unique()))}",
        )
        raise RankfallError(f"figure prediction_scores: no {chosen} of {outcome} for task {task!r}: {why}")
    order = list(added[DESIGN].predictor)
    alone = rows[(rows.kind == "alone") & (rows.over == DESIGN)]
    figure, ((left_panel, *others),) = make_canvas(1, 3, FIGURE_WIDTH, 0.22 * len(order) + 1.2, sharey=True)
    others[1].sharex(others[0])
    dots(left_panel, alone, order, "value", "low", "high")
    left_panel.set_yticks(range(len(order)), [name.replace("_", " ") for name in order][::-1])
    left_panel.axvline(NOTHING[chosen], color=CHANCE_COLOUR, linestyle=":", label="knows nothing")
    left_panel.set(xlabel=f"{MEANS[chosen]} of it alone", title=TITLES[outcome])
    for panel, null in zip(others, NULLS, strict=True):
        left_panel.axvline(select_null(rows, null).value.item(), color="#222222", linestyle=DASHES[null], label=null)
        dots(panel, added[null], order, "gain", "gain_low", "gain_high")
        panel.axvline(0, color="#222222", linestyle=DASHES[null])
        panel.axvspan(-MARGIN[chosen], MARGIN[chosen], color="#eeeeee", zorder=0, label="a gain that does not matter")
        panel.set(xlabel=f"{MEANS[chosen]} that it adds", title=f"beside {null}")
    text_below(figure, collect_labels([left_panel, *others]), 3)
    where = say_where(table, task, int(rows.tasks.iloc[0]))
    return Picture(figure, caption(rows, added, outcome, chosen, where), rows)


def dots(panel: Axes, rows: DataFrame, order: list[str], middle: str, low: str, high: str) -> None:
    """Draw one row per predictor, the first at the top."""
    seen: set[str] = set()
    for row in rows.to_dict("records"):
        colour, y = VERDICTS[row["verdict"]], len(order) - 1 - order.index(row["predictor"])
        panel.plot([row[low], row[high]], [y, y], color=colour, linewidth=1.2)
        panel.plot([row[middle]], [y], "o", color=colour, label=None if colour in seen else LABELS[colour])
        seen.add(colour)
    panel.grid(visible=False, axis="y")


def caption(rows: DataFrame, added: dict[str, DataFrame], outcome: str, statistic: str, where: str) -> str:
    """Return the caption."""
    networks, architectures = (int(rows[name].iloc[0]) for name in ("networks", "architectures"))
    size, design = (describe_null(select_null(rows, null).iloc[0]) for null in NULLS)
    return (
        f"How well what is measured before training predicts {TITLES[outcome]}, for architectures that no model has seen ({where}; "
        f"{count_words(networks, 'network')} of {count_words(architectures, 'architecture')}): {MEANS[statistic]} of each predictor "
        f"alone, and what it adds to depth and parameters, which by themselves have {size}, and to the parts of the architecture and its "
        f"depth, which have {design}. Lines are intervals of 95% over architectures. Beside depth and parameters: "
        f"{describe_additions(added[SIZE])} "
        f"Beside architecture and depth: {describe_additions(added[DESIGN])}"
    )


def describe_null(null: Any) -> str:
    """Return the value of a null model with its interval, for the caption."""
    interval = f"[{null.low:.2f}, {null.high:.2f}]" if null.low == null.low else "(too few draws for an interval)"
    return f"{null.value:.2f} {interval}"


def describe_additions(added: DataFrame) -> str:
    """List the predictors by their verdict beside a null model, or count them where they are many."""
    named = added.predictor.str.replace("_", " ").groupby(added.verdict, sort=False)
    return "; ".join(f"{verdict}: {name_or_count(list(names))}" for verdict, names in named) + "."


def name_or_count(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} predictors"
