"""Headline numbers of the table of cells: test accuracy, and how far it exceeds chance."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import all_rows, plain
from rankfall.report.headlines import Headline


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
