"""Declare what is shown of `parameters`: charts."""

from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import Chart

CHARTS = (
    Chart(
        "parameters",
        "How many numbers are learned",
        "Parameters of each architecture: all, or those of attention, of MLPs, of the rest of the blocks, and outside of them.",
        "architecture",
        "count",
        "",
        "parameters",
        kind="points",
        choose=("task", "depth", "part"),
        start={"part": "all"},
        within=POSITIVE,
        place=60,
    ),
)
