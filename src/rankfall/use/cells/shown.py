"""Declare what is shown of `cells`: headline numbers, charts, sentences, published numbers and selections of its rows."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import all_rows, plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart, Level
from rankfall.report.page.question import Read, TableQuestion, ask_range, percent
from rankfall.report.published_numbers import read_published
from rankfall.report.settings import settings_in
from rankfall.use.cells.depths import say_depth


def is_trained(table: DataFrame) -> Series:
    return table.epochs > 0


def accuracy(rows: DataFrame) -> DataFrame:
    return plain(rows, "test_accuracy", without_accuracy(rows), chance=rows.chance, attainable=rows.attainable)


def over_chance(rows: DataFrame) -> DataFrame:
    found = rows.assign(over=rows.test_accuracy - rows.chance)
    return plain(found, "over", without_accuracy(rows), ceiling=rows.attainable.astype(float) - rows.chance)


def without_accuracy(rows: DataFrame) -> Series:
    return rows.test_accuracy.isna().map({True: "its task has no accuracy", False: ""})


ATTAINABLE = "the best answers that the mask allows; null: not known, the table of cells says why"

HEADLINES = (
    Headline(
        "accuracy",
        "test accuracy",
        "share of the test set's answers that are right",
        ("test_accuracy", "chance", "attainable", "attainable_reason"),
        all_rows,
        accuracy,
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
    scores = read("scorecard")
    return say_depth(scores, settings_in(scores)) if scores is not None and len(scores) else ("", "")


SENTENCES = (
    ask_range("What did they learn?", "accuracy", "test accuracy is highest in", percent, place=120),
    TableQuestion("What does depth do to accuracy?", say_depths, place=130),
)


DATA = ["use/cells/published.csv"]
PUBLISHED = read_published(__file__)
