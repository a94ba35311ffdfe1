"""Declare the table `datasets` and what is shown of it: the data set that each task draws for each seed."""

from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart
from rankfall.report.schema import Column, Table


def columns() -> Table:
    """Declare the table: one row per split of a data set."""
    return Table(
        "datasets",
        "a task x seed x split",
        (
            Column("task", "text", "the task's name in the config"),
            Column("seed", "int", "the seed that the data is drawn from; null: all seeds share it", nullable=True),
            Column("data_key", "text", "content hash of the data set: the task's spec, its code, the seed"),
            Column("split", "text", "train, test, or another that the task names"),
            Column("samples", "int", "in the split; of a task without end, in an epoch", unit="samples"),
            Column("length", "int", "tokens in a sample", unit="tokens"),
            Column("size_in", "int", "symbols, or channels of a vector"),
            Column("size_out", "int", "classes, or channels of a value"),
            Column(
                "chance",
                "float",
                "test accuracy of the best guess that never sees an input; null: another split",
                nullable=True,
                nan=True,
            ),
            Column(
                "seen",
                "float",
                "share of the test samples that are training samples; null: another split",
                nullable=True,
                bounds=(0, 1),
            ),
        ),
        key=("task", "seed", "data_key", "split"),
        cells=False,
    )


CHARTS = (
    Chart(
        "chance",
        "What a guess is worth",
        "Chance of each task: test accuracy of the best guess that never sees an input.",
        "task",
        "chance",
        "",
        "chance",
        kind="points",
        line="task",
        choose=(),
        where={"split": "test"},
        within=SHARE,
        place=30,
    ),
)
