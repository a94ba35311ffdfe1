"""Declare the table `references` and what is shown of it: the accuracy of predictors that mix no tokens, as a reference for the accuracy of
a path."""

from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart, Level
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    """Declare the table of predictors without a network."""
    return declare_table(
        "references",
        "each cell's data and each predictor without a network",
        """
        predictor text: what it sees of a token: position, token, token_position (learned from the training set); or oracle: it knows
            the answers, but must say the same for equal tokens of a sample, as a network without positions must
        accuracy float: accuracy on the test set, per token
        """,
        key="predictor",
    )


CHARTS = (
    Chart(
        "references",
        "What can be had without mixing tokens",
        "Test accuracy of predictors that see a token's place, the token, or both; oracle knows all answers but must say the same for "
        "equal tokens of a sample.",
        "predictor",
        "accuracy",
        "",
        "test accuracy",
        kind="points",
        line="predictor",
        choose=("setting", "architecture"),
        within=SHARE,
        beside=(Level("chance", "chance_of_cell"),),
        place=20,
    ),
)
