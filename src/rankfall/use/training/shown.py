"""Declare what is shown of `training`: charts and selections of its rows."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.use.cells.shown import is_trained

TESTED = {"split": "test", "metric": "accuracy"}


def chance_of_metric(table: DataFrame) -> Series:
    """Return the chance level of test accuracy; missing for every other metric."""
    return table.chance_of_cell.where((table.split == TESTED["split"]) & (table.metric == TESTED["metric"]))


CHARTS = (
    Chart(
        "training",
        "In training",
        "Loss and accuracy by epoch.",
        "epoch",
        "value",
        "epoch",
        "value",
        choose=(*NETWORK, "split", "metric"),
        derive={"trained": is_trained, "chance_of_metric": chance_of_metric},
        where={"trained": True},
        named_by="metric",
        start=TESTED,
        within=POSITIVE,
        beside=(Level("chance", "chance_of_metric"),),
        place=40,
    ),
)
