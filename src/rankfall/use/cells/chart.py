"""Chart of test accuracy for the page."""

from rankfall.report.page.chart import SHARE, Chart, Level
from rankfall.use.cells.rows import is_trained

CHARTS = (
    Chart(
        "accuracy",
        "What was learned",
        "Test accuracy of each architecture, highest first.",
        "architecture",
        "test_accuracy",
        "",
        "test accuracy",
        kind="points",
        choose=("setting",),
        derive={"trained": is_trained},
        where={"trained": True},
        within=SHARE,
        beside=(Level("chance", "chance"), Level("the best that its mask allows", "attainable", shared=False)),
        opening=True,
        place=10,
    ),
)
