"""Declare the table `datasets` and what is shown of it: the data set that each task draws for each seed."""

from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    """Declare the table of data sets."""
    return declare_table(
        "datasets",
        "each task, seed and split",
        """
        task text: the task's name in the config
        seed int?: the seed that the data is drawn from; null: all seeds share it
        data_key text: content hash of the data set: the task's spec, its code, the seed
        split text: train, test, or another that the task names
        samples int [samples]: in the split; of a task without end, in an epoch
        length int [tokens]: tokens in a sample
        size_in int: symbols, or channels of a vector
        size_out int: classes, or channels of a value
        chance float? nan: test accuracy of the best guess that never sees an input; null: another split
        seen float? 0..1: share of the test samples that are training samples; null: another split
        """,
        key="task seed data_key split",
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
