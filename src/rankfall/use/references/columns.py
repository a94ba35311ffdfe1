"""references.parquet: the accuracy of predictors that mix no tokens, as a reference for the accuracy of a path."""

from rankfall.report.schema import Column, Table


def references() -> Table:
    """Declare the table: one row per predictor on a cell's data."""
    return Table(
        "references",
        "a cell's data x a predictor without a network",
        (
            Column(
                "predictor",
                "text",
                "what it sees of a token: position, token, token_position (learned from the training set); or oracle: it knows the "
                "answers, but must say the same for equal tokens of a sample, as a network without positions must",
            ),
            Column("accuracy", "float", "accuracy on the test set, per token"),
        ),
        key=("predictor",),
    )
