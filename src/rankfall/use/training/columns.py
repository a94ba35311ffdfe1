"""training.parquet: loss and accuracy during training."""

from rankfall.report.schema import Column, Table


def training() -> Table:
    """Declare the table: one row per cell, epoch, split and metric."""
    return Table(
        "training",
        "a cell x epoch x split x metric",
        (
            Column(
                "epoch", "int", "epochs completed; 0: at initialisation, of cells that are not trained", unit="epochs"
            ),
            Column("split", "text", "train: over the epoch's steps, with dropout; test and others: then, without"),
            Column(
                "metric", "text", "loss, in nats for classes, or another of the objective's metrics, such as accuracy"
            ),
            Column("value", "float", "mean over what was asked", nan=True),
        ),
        key=("epoch", "split", "metric"),
    )
