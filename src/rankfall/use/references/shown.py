"""Declare what is shown of `references`: charts."""

from rankfall.report.lines import SHARE
from rankfall.report.page.chart import Chart, Level

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
