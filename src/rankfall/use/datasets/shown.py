"""Declare what is shown of `datasets`: charts."""

from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart

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
