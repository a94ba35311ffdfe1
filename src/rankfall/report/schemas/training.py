"""training.parquet: the course of training."""

from rankfall.report.schema import Column, Table


def training() -> Table:
    """One row a cell at an epoch."""
    return Table(
        "training",
        "a cell at an epoch",
        (
            Column("epoch", "int", "epochs completed, from 1", unit="epochs"),
            Column("train_loss", "float", "mean loss of the epoch's steps, with dropout", unit="nats", nan=True),
            Column("train_accuracy", "float", "mean accuracy of the epoch's steps; NaN for regression", nan=True),
            Column(
                "test_loss",
                "float",
                "loss on the test set; null: not evaluated then",
                unit="nats",
                nullable=True,
                nan=True,
            ),
            Column(
                "test_accuracy",
                "float",
                "accuracy on the test set; NaN for regression, null: not evaluated then",
                nullable=True,
                nan=True,
            ),
        ),
        key=("epoch",),
    )
