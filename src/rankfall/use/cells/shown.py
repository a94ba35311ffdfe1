"""Declare the table `cells` and what is shown of it: the results of each cell."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline, all_rows, by_name, plain
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart, Level
from rankfall.report.page.question import Read, TableQuestion, ask_range, fit, list_names, percent, quote_name
from rankfall.report.part_numbers import is_missing
from rankfall.report.published_numbers import read_published
from rankfall.report.ranking import say_span, weigh
from rankfall.report.schema import Table, declare_table
from rankfall.report.settings import Setting, rows_at, settings_in


def columns() -> Table:
    """Declare the table of cells."""
    return declare_table(
        "cells",
        "each cell",
        """
        steps int [steps]: optimiser steps that counted
        train_loss float [nats] nan: loss on the training set at the end, without dropout; NaN if untrained
        train_accuracy float nan: accuracy on the training set at the end; NaN for regression, and if untrained
        test_loss float [nats] nan: loss on the test set at the end
        test_accuracy float nan: accuracy on the test set at the end; NaN for regression
        chance float nan: test accuracy of the best guess that never sees an input
        attainable float?: expected test accuracy of the best answers that are any function of their place and of the tokens that the
            mask lets it read, through all layers; null: not known, see `attainable_reason`
        attainable_reason text: why `attainable` is not known; empty where it is
        seconds float [s] provenance: the cell's share of its stack's training time
        step_ms float? [ms] provenance: its share of an optimiser step of the stack, median over epochs, without data, evaluation and
            checkpoints; null: fewer than 20 steps were timed
        together int? provenance: networks in its stack; null: not recorded
        threads int? provenance: that PyTorch had; null: not recorded
        """,
    )


def is_trained(table: DataFrame) -> Series:
    """Return which rows are of networks that were trained."""
    return table.epochs > 0


def over_chance(rows: DataFrame) -> DataFrame:
    """Return the test accuracy of networks minus chance, with its ceiling."""
    over = rows.assign(over=rows.test_accuracy - rows.chance)
    return plain(over, "over", without_accuracy(rows), ceiling=rows.attainable.astype(float) - rows.chance)


def without_accuracy(rows: DataFrame) -> Series:
    """Return why rows have no accuracy; an empty text for those that have one."""
    return rows.test_accuracy.isna().map({True: "its task has no accuracy", False: ""})


ATTAINABLE = "the best answers that the mask allows; null: not known, the table of cells says why"

HEADLINES = (
    Headline(
        "accuracy",
        "test accuracy",
        "share of the test set's answers that are right",
        ("test_accuracy", "chance", "attainable", "attainable_reason"),
        all_rows,
        lambda rows: plain(
            rows, "test_accuracy", without_accuracy(rows), chance=rows.chance, attainable=rows.attainable
        ),
        first="only trained",
        beside={"chance": "the best guess that never sees an input", "attainable": ATTAINABLE},
        place=10,
    ),
    Headline(
        "over_chance",
        "accuracy over chance",
        "test accuracy less that of the best guess that never sees an input",
        ("test_accuracy", "chance", "attainable"),
        all_rows,
        over_chance,
        first="only trained",
        beside={"ceiling": f"chance is taken off {ATTAINABLE}"},
        place=20,
    ),
)


CHARTS = (
    Chart(
        "accuracy",
        "What was learned",
        "Test accuracy of each architecture, highest first.",
        "architecture",
        "test_accuracy",
        "",
        "test accuracy",
        kind="points",
        choose=("setting",),
        derive={"trained": is_trained},
        where={"trained": True},
        within=SHARE,
        beside=(Level("chance", "chance"), Level("the best that its mask allows", "attainable", shared=False)),
        opening=True,
        place=10,
    ),
    Chart(
        "accuracy_by_depth",
        "Accuracy by depth",
        "Test accuracy of trained networks against their number of layers. Lines need networks of several depths in the grid.",
        "depth",
        "test_accuracy",
        "layers",
        "test accuracy",
        choose=("task", "training", "apart"),
        derive={"trained": is_trained},
        where={"trained": True},
        within=SHARE,
        beside=(Level("chance", "chance"),),
        place=15,
    ),
)


def say_depths(read: Read) -> tuple[str, str]:
    """Write what depth does to accuracy, from the scorecard."""
    scores = read("scorecard")
    return say_depth(scores, settings_in(scores)) if scores is not None and len(scores) else ("", "")


SENTENCES = (
    ask_range("What did they learn?", "accuracy", "test accuracy is highest in", percent, place=120),
    TableQuestion("What does depth do to accuracy?", say_depths, place=25),
)


DATA = ["use/cells/published.csv"]
PUBLISHED = read_published(__file__)


def say_depth(scores: DataFrame, settings: list[Setting]) -> tuple[str, str]:
    """Return (sentence, setting without its depth) for the settings in which most architectures have two depths.

    The sentence compares the shallowest with the deepest, seed by seed. It is empty if no architecture has two depths, or if nothing
    differs.
    """
    families: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=lambda setting: setting.depth):
        families.setdefault(setting.but_depth, []).append(setting)
    pairs = {family: pair_depths(scores, members[0], members[-1]) for family, members in sorted(families.items())}
    chosen = max(pairs, key=lambda family: len(pairs[family]), default="")
    if not pairs.get(chosen):
        return "", ""
    from pandas import concat

    moves: dict[str, list[str]] = {"falls": [], "rises": []}
    for before, after in pairs[chosen]:
        moved = weigh(concat([before, after], axis=1, ignore_index=True).T, by_name("accuracy")).against(0)[1]
        values = f"{percent(before.accuracy)} to {percent(after.accuracy)}"
        if moved in (-1, 1):  # otherwise they tie, or have too few shared seeds
            moves["falls" if moved < 0 else "rises"].append(f"{quote_name(before)} ({values})")
    phrases = [f"{move} in {list_names(names)}" for move, names in moves.items() if names]
    if not phrases:
        return "", ""
    first, last = families[chosen][0].depth, families[chosen][-1].depth
    chances = [row.accuracy_chance for pair in pairs[chosen] for row in pair if not is_missing(row.accuracy_chance)]
    more = [*(f", {phrase}" for phrase in phrases[1:]), f"; chance: {say_span(chances, percent)}" * bool(chances)]
    return fit(f"from depth {first} to {last} accuracy {phrases[0]}", *more), chosen


def pair_depths(scores: DataFrame, flat: Setting, deep: Setting) -> list[tuple[Series, Series]]:
    """Return the (shallow, deep) rows of each architecture that has an accuracy at both depths; none if the depths are the same."""
    shallow_rows, deep_rows = (
        {
            (row.architecture, row.variant): row
            for _, row in rows_at(scores, setting).iterrows()
            if row.accuracy == row.accuracy
        }
        for setting in (flat, deep)
    )
    return [(row, deep_rows[key]) for key, row in shallow_rows.items() if key in deep_rows and flat != deep]
