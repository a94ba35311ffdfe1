"""Declare the table `training` and what is shown of it: loss and accuracy during training."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.schema import Table, declare_table
from rankfall.use.cells.shown import is_trained


def columns() -> Table:
    """Declare the table of metrics by epoch."""
    return declare_table(
        "training",
        "each cell, epoch, split and metric",
        """
        epoch int [epochs]: epochs completed; 0: at initialisation, of cells that are not trained
        split text: train: over the epoch's steps, with dropout; test and others: then, without
        metric text: loss, in nats for classes, or another of the objective's metrics, such as accuracy
        value float nan: mean over what was asked
        """,
        key="epoch split metric",
    )


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
