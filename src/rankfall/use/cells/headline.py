"""What a network has learned, and how long a step of its training takes."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.cell_numbers import all_rows, plain
from rankfall.report.headlines import Headline
from rankfall.report.processors import MEASURED


def accuracy(rows: DataFrame) -> DataFrame:
    return plain(rows, "test_accuracy", without_accuracy(rows), chance=rows.chance, attainable=rows.attainable)


def over_chance(rows: DataFrame) -> DataFrame:
    found = rows.assign(over=rows.test_accuracy - rows.chance)
    return plain(found, "over", without_accuracy(rows), ceiling=rows.attainable.astype(float) - rows.chance)


def without_accuracy(rows: DataFrame) -> Series:
    return rows.test_accuracy.isna().map({True: "its task has no accuracy", False: ""})


def step_ms(rows: DataFrame) -> DataFrame:
    """`by`: what the time belongs to beside the network."""
    none = (rows.steps.fillna(0) > 0).map(
        {True: "too few of its steps were timed to say how long one takes", False: "it takes no step"}
    )
    return plain(rows, "step_ms", none).assign(by=describe_computation(rows))


def describe_computation(rows: DataFrame) -> Series:
    """Engine, device, threads, size of the stack and processor, as far as they are known."""
    threads, together = rows.threads.astype("Int64"), rows.together.astype("Int64")
    said = rows.engine.fillna("engine unknown") + " on " + rows.device.fillna("a device unknown")
    said = said + (
        ", " + threads.astype("string") + " thread" + (threads != 1).fillna(False).map({True: "s", False: ""})
    ).fillna("")
    said = said + (", " + together.astype("string") + " at once").fillna("")
    processor = rows.processor.astype("string").str.partition(MEASURED)[0] if len(rows) else rows.processor
    return said + (", " + processor).fillna("")


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
    Headline(
        "step_ms",
        "time of a training step (ms)",
        "milliseconds of one optimiser step, the network's share of the stack that it was trained in; of steps alone. Networks of one "
        "stack share one reading, which whatever else the machine does makes longer: times within a quarter of each other are a tie",
        ("step_ms", "steps", "engine", "device", "threads", "together", "processor"),
        all_rows,
        step_ms,
        unit="ms",
        first="only trained",
        good="low",
        digits=2,
        provenance=True,
        compared_within="engine, device, threads, number of networks in the stack and processor that `step_ms` belongs to; only equal "
        "ones are compared",
        counted="reading",
        near=0.25,
        place=30,
    ),
)
