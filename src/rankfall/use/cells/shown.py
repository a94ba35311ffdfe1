"""Declare what is shown of `cells`: headline numbers, charts, sentences, published numbers and selections of its rows."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import all_rows, plain
from rankfall.report.headlines import Headline, by_name
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart, Level
from rankfall.report.page.question import Question, Read, TableQuestion, say_range
from rankfall.report.page.sentences import list_names, name, percent
from rankfall.report.published_numbers import read_published
from rankfall.report.score_text import share_of_attainable
from rankfall.report.settings import Setting, settings_in
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
)


def say_learned(rows: DataFrame, setting: Setting, settings: int) -> str:
    said = say_range(
        rows,
        setting,
        settings,
        number="accuracy",
        text="test accuracy is highest in",
        write=percent,
        chance="The best guess that never sees an input has {}",
    )
    return said + (say_attainable(rows) if said else "")


def say_attainable(rows: DataFrame) -> str:
    """Write which masks limit the attainable accuracy, and the share of it that each architecture reaches."""
    headline = by_name("accuracy")
    shares = [(row, share) for _, row in rows.iterrows() if (share := share_of_attainable(row, headline)) is not None]
    parts = [f"{name(row)} has {share:.0%} of {percent(row.accuracy_attainable)}" for row, share in shares]
    return f" Of what its mask leaves attainable {list_names(parts)}." if parts else ""


def say_depths(read: Read) -> tuple[str, str]:
    scores = read("scorecard")
    if scores is None or not len(scores):
        return "", ""
    settings, said = say_depth(scores, settings_in(scores))
    return said, settings


SENTENCES = (
    Question("What did they learn?", ("accuracy",), say_learned, place=120),
    TableQuestion("What does depth do to accuracy?", say_depths, place=130),
)


DATA = ["use/cells/published.csv"]
PUBLISHED = read_published(__file__)
