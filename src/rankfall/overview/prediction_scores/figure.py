"""What predictors say alone, and what they add to depth and parameters, with intervals over architectures."""

from typing import Literal

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.overview.prediction_scores.rows import (
    ALL,
    MARGIN,
    MEANS,
    NOTHING,
    STATISTICS,
    TITLES,
    by_gain,
    null,
    of,
    say_where,
)
from rankfall.report.colours import BLUE, CHANCE, GREY, RED
from rankfall.report.labels import join, many
from rankfall.report.lines import below, collect_labels
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["prediction_scores"]
VERDICTS = {"adds": BLUE, "predicts": BLUE, "adds nothing": RED, "does not predict": RED, "undecided": GREY}
NAMED = 6  # predictors of one verdict, at most
SAID = {BLUE: "above nothing for all predictors at once", RED: "nothing that matters", GREY: "undecided"}


def prediction_scores(
    read: Read,
    *,
    outcome: Literal["trains", "over_chance", "steps", "largest_depth"] = "trains",
    statistic: Literal["auc", "tau", "r2"] | None = None,
    task: str | None = None,
) -> Picture:
    """Left: models of one predictor, beside those of depth and parameters. Right: the gain over depth and parameters. `statistic`: the
    first of the outcome; `task`: null: the mean over tasks."""
    task = task or ALL
    chosen = statistic or STATISTICS[outcome][0]
    table = read("prediction_scores")
    rows = of(table, outcome, chosen, task)
    rows = rows.astype(dict.fromkeys(("value", "low", "high", "gain", "gain_low", "gain_high"), float))
    added = by_gain(rows[rows.value.notna()])
    if added.empty:
        why = next(
            iter(rows.value_reason),
            f"{outcome} has {join(list(STATISTICS[outcome]))}, of tasks {join(sorted(table.task.unique()))}",
        )
        raise RankfallError(f"figure prediction_scores: no {chosen} of {outcome} for task {task!r}: {why}")
    alone = rows[rows.kind == "alone"].set_index("predictor").loc[list(added.predictor)].reset_index()
    figure, axes = canvas(1, 2, WIDTH, 0.22 * len(added) + 1.2, sharey=True)
    dots(axes[0][0], alone, "value", "low", "high")
    dots(axes[0][1], added, "gain", "gain_low", "gain_high")
    axes[0][0].set_yticks(range(len(added)), [name.replace("_", " ") for name in added.predictor][::-1])
    axes[0][0].axvline(NOTHING[chosen], color=CHANCE, linestyle=":", label="knows nothing")
    (usual,) = null(rows).itertuples()
    axes[0][0].axvline(usual.value, color="#222222", linestyle="--", label="depth and parameters")
    axes[0][1].axvline(0, color="#222222", linestyle="--")
    axes[0][1].axvspan(-MARGIN[chosen], MARGIN[chosen], color="#eeeeee", zorder=0, label="a gain that does not matter")
    axes[0][0].set(xlabel=f"{MEANS[chosen]} of it alone", title=TITLES[outcome])
    axes[0][1].set(xlabel=f"{MEANS[chosen]} that it adds to depth and parameters")
    below(figure, collect_labels([axes[0][0], axes[0][1]]), 3)
    return Picture(figure, caption(added, usual, outcome, chosen, say_where(table, task, usual.tasks)), rows)


def dots(panel: Axes, rows: DataFrame, middle: str, low: str, high: str) -> None:
    """One row a predictor, the first at the top."""
    seen: set[str] = set()
    for place, one in enumerate(rows.to_dict("records")):
        colour, y = VERDICTS[one["verdict"]], len(rows) - 1 - place
        panel.plot([one[low], one[high]], [y, y], color=colour, linewidth=1.2)
        panel.plot([one[middle]], [y], "o", color=colour, label=None if colour in seen else SAID[colour])
        seen.add(colour)
    panel.grid(visible=False, axis="y")


def caption(added: DataFrame, usual: object, outcome: str, statistic: str, where: str) -> str:
    value, low, high = (getattr(usual, name) for name in ("value", "low", "high"))
    networks, architectures = (int(getattr(usual, name)) for name in ("networks", "architectures"))
    interval = f" [{low:.2f}, {high:.2f}]" if low == low else ", of which too few draws have a value for an interval"
    return (
        f"How well what is measured before training predicts {TITLES[outcome]}, for architectures that no model has seen ({where}; "
        f"{many(networks, 'network')} of {many(architectures, 'architecture')}): {MEANS[statistic]} of each predictor alone and what it "
        f"adds to depth and parameters, which by themselves have {value:.2f}{interval}. Lines are intervals of 95% over "
        "architectures. " + describe_additions(added)
    )


def describe_additions(added: DataFrame) -> str:
    """Which predictors add, which add nothing, and how many are undecided."""
    named = {
        verdict: list(part.predictor.str.replace("_", " ")) for verdict, part in added.groupby("verdict", sort=False)
    }
    parts = [
        f"{join(named['adds'])} {'adds' if len(named['adds']) == 1 else 'add'} to them"
        if "adds" in named
        else "none adds to them for sure",
        f"{join(named['adds nothing'])} {'adds' if len(named['adds nothing']) == 1 else 'add'} nothing that matters"
        if "adds nothing" in named
        else "",
        name_undecided(named["undecided"]) if "undecided" in named else "",
    ]
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}."


def name_undecided(names: list[str]) -> str:
    """By name where they are few."""
    return (
        f"{join(names)} {'is' if len(names) == 1 else 'are'} undecided"
        if len(names) <= NAMED
        else f"{len(names)} are undecided"
    )
