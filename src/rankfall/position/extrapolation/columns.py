"""extrapolation.parquet: masked language models on texts longer or shorter than those of training."""

from rankfall.report.schema import Column, Table


def extrapolation() -> Table:
    """Declare the table: one row per cell and tested length."""
    return Table(
        "extrapolation",
        "a cell x tested length",
        (
            Column("trained_length", "int", "length of the windows in training, without sentinels", unit="tokens"),
            Column("length", "int", "length of the windows here, without sentinels", unit="tokens"),
            Column("times", "float", "the tested length in trained lengths"),
            Column("targets", "int", "hidden tokens that were asked for; 0: the network cannot run (see refused)"),
            Column(
                "accuracy",
                "float",
                "share of the hidden tokens that are found, of the same held-out text at every length; null: see refused",
                nullable=True,
            ),
            Column("loss", "float", "mean loss over the hidden tokens; null: see refused", unit="nats", nullable=True),
            Column(
                "accuracy_trained",
                "float",
                "accuracy at the trained length over exactly these targets; null: the network cannot run",
                nullable=True,
                nan=True,
            ),
            Column(
                "loss_trained",
                "float",
                "loss at the trained length over exactly these targets; null: the network cannot run",
                unit="nats",
                nullable=True,
                nan=True,
            ),
            Column("kept", "float", "accuracy / accuracy_trained; null: see value_reason", nullable=True),
            Column(
                "value_reason",
                "text",
                "why nothing is said to be kept: no accuracy here, or none at the trained length; else empty",
                nullable=True,
            ),
            Column(
                "chance", "float", "accuracy of always naming the most frequent word of the training text", nan=True
            ),
            Column("refused", "text", "why there is no accuracy; empty otherwise"),
        ),
        key=("times",),
    )
